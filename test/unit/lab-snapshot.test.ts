import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isNoise } from "../../lab/noise.js";
import { compare, describeDifferences, parseSnapshot } from "../../lab/snapshot.js";

const text = (lines: readonly string[], files: readonly string[] = [], hashes: readonly string[] = []) =>
  [...lines, "FILES", ...files, "HASHES", ...hashes, ""].join("\0");

describe("a snapshot", () => {
  it("is read from records", () => {
    const odd = "/opt/a b\tc\nd  e";
    assert.deepEqual(
      parseSnapshot(
        text(
          ["module\tbridge", "sysctl\tnet.x\t4\t5", "firewall\tr", "firewall\tr", "sysctl\tfs.file-nr\t1"],
          ["d 755 root:root\t\t/opt", `f 644 1000:root\t\t${odd}`, "l 777 root:root\t../x\t/opt/l"],
          [`abc  ${odd}`],
        ),
      ),
      {
        module: { bridge: "" },
        sysctl: { "net.x": "4 5" },
        firewall: { r: "", "r #2": "" },
        file: { "/opt": "folder 755 root:root", [odd]: "file 644 1000:root abc", "/opt/l": "link → ../x" },
      },
    );
  });

  it("that was cut off is an error", () => assert.throws(() => parseSnapshot("module\tbridge\0FILES\0"), /to the end/));

  it("is compared kind by kind", () => {
    const differences = compare(
      { module: { bridge: "" }, mount: { "/a": "x", "/b": "y" } },
      { mount: { "/a": "z", "/b": "y" }, swap: { "/s": "file" } },
    );
    assert.deepEqual(differences, [
      { kind: "module", name: "bridge", before: "" },
      { kind: "mount", name: "/a", before: "x", after: "z" },
      { kind: "swap", name: "/s", after: "file" },
    ]);
    assert.equal(describeDifferences(differences), "- module bridge\n~ mount /a: x → z\n+ swap /s: file");
  });

  const noise: readonly [string, string, boolean][] = [
    ["file", "/etc/passwd-", true],
    ["file", "/etc/passwd", false],
    ["file", "/var/lib/dpkg/status", true],
    ["file", "/var/lib/dpkg/info/curl.list", false],
    ["file", "/root/.cache/x", true],
    ["file", "/root/.kube/cache", false],
    ["port", "udp 127.0.0.11:4000", true],
    ["port", "udp 127.0.0.1:4000", false],
    ["sysctl", "kernel.random.uuid", true],
    ["sysctl", "kernel.panic", false],
    ["mount", "/run/credentials/systemd-sysctl.service", true],
    ["mount", "/run", false],
  ];
  for (const [kind, name, is] of noise)
    it(`${kind} ${name} is ${is ? "noise" : "looked at"}`, () => assert.equal(isNoise(kind, name), is));
});
