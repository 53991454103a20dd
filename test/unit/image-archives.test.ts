import { RunError } from "@pulumi/pulumi";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { create } from "tar";
import { clusterJob } from "../../cli/job";
import { Images } from "../../resources/images";
import { readImageArchive } from "../../resources/modules/image-archives";

const dir = mkdtempSync(join(tmpdir(), "kubexm-archives-"));
after(() => rmSync(dir, { recursive: true }));

const annotated = (name: string) => ({ annotations: { "io.containerd.image.name": name } });

let made = 0;
async function archive(files: Readonly<Record<string, unknown>>, gzip = false): Promise<string> {
  const cwd = mkdtempSync(join(dir, "content-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), JSON.stringify(content));
  const file = join(dir, `${++made}.tar`);
  await create({ file, cwd, gzip }, Object.keys(files));
  return file;
}

const cases: readonly [what: string, files: Record<string, unknown>, images: string[]][] = [
  [
    "docker save: without docker's own registry",
    { "manifest.json": [{ RepoTags: ["pause:3.10", "me/app:1", "registry.k8s.io/etcd:3.6.6-0"] }, { RepoTags: null }] },
    ["docker.io/library/pause:3.10", "docker.io/me/app:1", "registry.k8s.io/etcd:3.6.6-0"],
  ],
  [
    "ctr images export",
    { "index.json": { manifests: [annotated("registry.k8s.io/pause:3.10.1"), {}] } },
    ["registry.k8s.io/pause:3.10.1"],
  ],
  [
    "both lists: each image once",
    {
      "index.json": { manifests: [annotated("quay.io/a:1")] },
      "manifest.json": [{ RepoTags: ["quay.io/a:1", "localhost:5000/b:2"] }],
    },
    ["localhost:5000/b:2", "quay.io/a:1"],
  ],
];

for (const [what, files, images] of cases)
  for (const gzip of [false, true])
    test(`${what}${gzip ? ", gzipped" : ""}`, async () => {
      const path = await archive(files, gzip);
      const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
      assert.deepEqual(await readImageArchive(path), { path, sha256, images });
    });

const refused: readonly [what: string, path: () => Promise<string>, told: RegExp][] = [
  ["none there", () => Promise.resolve(join(dir, "none.tar")), /imageArchives: .*none\.tar cannot be read \(.*ENOENT/],
  ["names nothing", () => archive({ "index.json": { manifests: [{}] } }), /names no image; write the path/],
  ["no list", () => archive({ "other.json": 1 }), /names no image/],
  ["another shape", () => archive({ "manifest.json": { no: "list" } }), /cannot be read/],
  [
    "no archive",
    () => {
      const path = join(dir, "text.tar");
      writeFileSync(path, "<html>not found</html>".repeat(100));
      return Promise.resolve(path);
    },
    /text\.tar (cannot be read|names no image)/,
  ],
];

for (const [what, path, told] of refused)
  test(`refused: ${what}`, async () => {
    await assert.rejects(readImageArchive(await path()), told);
  });

test("an archive is read once in a process; one that could not be read is read anew", async () => {
  const path = await archive({ "manifest.json": [{ RepoTags: ["a:1"] }] });
  const moved = `${path}.moved`;
  renameSync(path, moved);
  await assert.rejects(readImageArchive(path), /ENOENT/);
  renameSync(moved, path);
  const first = await readImageArchive(path);
  rmSync(path);
  assert.deepEqual(await readImageArchive(path), first);
});

test("an archive that is not there ends a run before any resource is made", async () => {
  const file = join(dir, "cluster.yaml");
  writeFileSync(
    file,
    `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: { name: prod }
spec:
  hosts: [{ name: m1, address: 192.0.2.1 }]
  roleGroups: { master: [m1], etcd: [m1], worker: [m1] }
  mirrors: { imageArchives: [${join(dir, "none.tar")}] }
`,
  );
  const { program } = await clusterJob(file);
  await assert.rejects(program(), (error: Error) => {
    assert.ok(RunError.isInstance(error), String(error));
    assert.match(error.message, /imageArchives: .*none\.tar cannot be read/);
    return true;
  });
});

test("an archive is sent only for images that the host wants", () => {
  const archives = [
    { path: "/a/nodes.tar", sha256: "1".repeat(64), images: ["registry.k8s.io/pause:3.10.1", "quay.io/other:1"] },
    { path: "/a/masters.tar", sha256: "2".repeat(64), images: ["registry.k8s.io/etcd:3.6.6-0"] },
  ];
  const images = ["registry.k8s.io/pause:3.10.1", "registry.k8s.io/kube-proxy:v1.35.4"];
  const { definition } = Images;
  const steps = [definition.steps(definition.args.parse({ images, archives }), {} as never)].flat(2);
  assert.deepEqual(
    steps.map(({ id, bodies = [] }) => [id, bodies.length]),
    [
      ["images of nodes.tar 11111111", 1],
      ["images", 0],
    ],
  );
});
