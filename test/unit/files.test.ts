import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSpec } from "../../resources/config";
import { neededFiles, perhapsFiles } from "../../resources/modules/files";

const arches = (...written: (("amd64" | "arm64") | undefined)[]) => {
  const hosts = written.map((arch, i) => ({ name: `h${i}`, address: `192.0.2.${i + 1}`, ...(arch && { arch }) }));
  const spec = parseSpec("test", {
    hosts,
    roleGroups: { master: ["h0"], etcd: ["h0"], worker: hosts.map(({ name }) => name) },
    kubernetes: { version: "v1.35.4" },
  });
  return [neededFiles(spec), perhapsFiles(spec)].map((files) => [...new Set(files.map(({ arch }) => arch))].join());
};

test("files are needed for the architectures that are written, and perhaps for the other where one is not", () => {
  assert.deepEqual(arches("amd64", "arm64"), ["amd64,arm64", ""]);
  assert.deepEqual(arches("arm64"), ["arm64", ""]);
  assert.deepEqual(arches(undefined, "amd64"), ["amd64", "arm64"]);
  assert.deepEqual(arches(undefined, "arm64"), ["amd64,arm64", ""]);
});

test("of a containerd that is adopted no file is needed", () => {
  const names = (existing: "adopt" | "replace") => {
    const spec = parseSpec("test", {
      hosts: [{ name: "h0", address: "192.0.2.1", arch: "amd64" }],
      roleGroups: { master: ["h0"], etcd: ["h0"], worker: ["h0"] },
      kubernetes: { version: "v1.35.4", containerRuntime: { containerd: { existing } } },
    });
    return neededFiles(spec).map(({ name }) => name);
  };
  assert.deepEqual(
    names("replace").filter((name) => !names("adopt").includes(name)),
    ["containerd", "runc"],
  );
});
