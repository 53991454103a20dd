import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { lstat, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { type Wanted, buildKey } from "../../lab/mirror/build.js";
import { type Published, ensurePublished, tags } from "../../lab/mirror/images.js";
import { type StoredImage, parseReference, readLayout, store, writeLayer, writeLayout } from "../../lab/mirror/oci.js";
import { gzipTo, tar } from "../../lab/mirror/tar.js";
import type { Part } from "../../lab/mirror/types.js";
import { once } from "../../toolchain/cache.js";
import { run } from "../../toolchain/process.js";

const saved = { ...process.env };
let dir = "";

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-mirror-"));
  process.env["KUBEXM_CACHE"] = join(dir, "cache");
});

after(async () => {
  process.env = saved;
  await rm(dir, { recursive: true, force: true });
});

const sha256 = (data: Buffer) => createHash("sha256").update(data).digest("hex");

/** Every blob must hash to its name; returns how many there are. */
async function checkBlobs(layout: string): Promise<number> {
  const names = await readdir(join(layout, "blobs", "sha256"));
  for (const name of names) assert.equal(sha256(await readFile(join(layout, "blobs", "sha256", name))), name);
  return names.length;
}

test("the system's tar reads what the writer writes", async () => {
  const big = join(dir, "big");
  await writeFile(big, Buffer.alloc(70_001, "x"));
  const archive = join(dir, "a.tgz");
  await gzipTo(
    tar([
      { path: "d", body: { folder: true } },
      { path: "d/big", body: { file: big } },
      { path: "d/empty", body: { text: "" } },
      { path: "d/note", mode: 0o600, body: { text: "hällo\n" } },
      { path: "d/again", body: { link: "big" } },
      { path: "tmp", mode: 0o1777, body: { folder: true } },
    ]),
    archive,
  );
  const out = join(dir, "out");
  await mkdir(out);
  await run("tar", ["-xpzf", archive, "-C", out]);
  assert.equal((await readFile(join(out, "d", "again"))).length, 70_001);
  assert.equal(await readFile(join(out, "d", "note"), "utf8"), "hällo\n");
  assert.equal(await readFile(join(out, "d", "empty"), "utf8"), "");
  const mode = async (path: string) => (await lstat(join(out, path))).mode & 0o7777;
  assert.deepEqual([await mode("d/big"), await mode("d/note"), await mode("tmp")], [0o755, 0o600, 0o1777]);
});

test("digests of an archive are those of its compressed and its plain form, and the same each time", async () => {
  const pack = (name: string) => gzipTo(tar([{ path: "x", body: { text: "x" } }]), join(dir, name));
  const packed = await pack("one.tgz");
  const data = await readFile(join(dir, "one.tgz"));
  assert.deepEqual(packed, { size: data.length, sha256: sha256(data), inner: sha256(gunzipSync(data)) });
  assert.deepEqual(await pack("two.tgz"), packed);
});

test("a name that does not fit into a tar header is an error, not a cut name", async () => {
  const pack = gzipTo(tar([{ path: "n".repeat(101), body: { text: "" } }]), join(dir, "long.tgz"));
  await assert.rejects(pack, /too long for tar/);
});

test("a layout's digests hold, shared layers are there once, and the registry's storage names them all", async () => {
  const layout = join(dir, "layout");
  const base = await writeLayer(layout, [{ path: "base", body: { text: "base" } }]);
  const own = await writeLayer(layout, [{ path: "own", body: { text: "own" } }]);
  await writeLayout(layout, "amd64", [
    { refs: ["registry.example/a/b:v1", "docker.example/b:1"], layers: [base, own], entrypoint: ["/own"] },
    { refs: ["registry.example/c:v1"], layers: [base], user: "1:1" },
  ]);
  // Two layers, two configurations, two manifests.
  assert.equal(await checkBlobs(layout), 6);
  const images = await readLayout(layout);
  assert.deepEqual(
    images.map(({ ref }) => ref),
    ["registry.example/a/b:v1", "docker.example/b:1", "registry.example/c:v1"],
  );
  const [first] = images;
  assert.ok(first);
  const [configDigest = ""] = first.blobs;
  const blob = (digest: string) => readFile(join(layout, "blobs", ...digest.split(":")), "utf8");
  const config = JSON.parse(await blob(configDigest)) as { rootfs: { diff_ids: string[] }; config: object };
  assert.deepEqual(config.rootfs.diff_ids, [base.diffId, own.diffId]);
  assert.deepEqual(first.blobs.slice(1), [base.digest, own.digest]);
  assert.deepEqual((config.config as { Entrypoint: string[] }).Entrypoint, ["/own"]);

  const root = join(dir, "storage");
  await store(root, first, "a/b", "v1");
  await store(root, first, "a/b", "other");
  const v2 = join(root, "docker", "registry", "v2");
  for (const digest of [first.manifest, ...first.blobs]) {
    const hex = digest.replace("sha256:", "");
    assert.equal(sha256(await readFile(join(v2, "blobs", "sha256", hex.slice(0, 2), hex, "data"))), hex);
  }
  const repository = join(v2, "repositories", "a", "b");
  const current = (tag: string) => readFile(join(repository, "_manifests", "tags", tag, "current", "link"), "utf8");
  assert.deepEqual([await current("v1"), await current("other")], [first.manifest, first.manifest]);
  assert.equal((await readdir(join(repository, "_layers", "sha256"))).length, first.blobs.length);
});

test("image references come apart, and nothing but full ones is taken", () => {
  assert.deepEqual(parseReference("registry.k8s.io/coredns/coredns:v1.14.6"), {
    host: "registry.k8s.io",
    repository: "coredns/coredns",
    tag: "v1.14.6",
  });
  assert.deepEqual(parseReference("127.0.0.1:5000/pause:3.10"), {
    host: "127.0.0.1:5000",
    repository: "pause",
    tag: "3.10",
  });
  for (const text of ["pause", "pause:3.10", "registry.k8s.io/pause", ""])
    assert.throws(() => parseReference(text), /not a full image reference/);
});

test("a tag that kubeadm asks for gets the image of that repository, unless somebody has it by that tag", () => {
  const image = (ref: string): StoredImage => ({ ref, manifest: ref, blobs: [], layout: "" });
  const published = (refs: string[], expects: string[] = []): Published => ({
    files: new Map(),
    images: refs.map(image),
    expects,
  });
  const asks = ["k.io/etcd:3.6.6-0", "k.io/pause:3.10.1", "k.io/unknown:1"];
  const found = tags([published([], asks), published(["k.io/etcd:3.6.14-0"]), published(["k.io/pause:3.10.1"])]);
  assert.deepEqual(
    found.map(({ repository, tag, image: { ref } }) => `${repository}:${tag} ${ref}`),
    ["etcd:3.6.14-0 k.io/etcd:3.6.14-0", "pause:3.10.1 k.io/pause:3.10.1", "etcd:3.6.6-0 k.io/etcd:3.6.14-0"],
  );
});

test("a part is packed as its entry says: names of one file stay links, sums match, one layer for equal images", async () => {
  const part: Part = {
    versions: ["1.0.0"],
    outputs: () => [{ out: "tool", c: "" }],
    downloads: () => [
      { url: "dl.example/tool", body: "other", sums: [{ url: "dl.example/tool.sha256", shape: "bare" }] },
      {
        url: "dl.example/tool.tgz",
        body: { "bin/": undefined, "bin/tool": "tool", "bin/other": "other" },
        sums: [{ url: "dl.example/SUMS", shape: "lines" }],
      },
    ],
    images: () =>
      ["a", "b"].map((name) => ({
        refs: [`dl.example/${name}:1`],
        base: "tiny",
        files: { "/bin/tool": "tool", "/etc/note": { text: "note" } },
        entrypoint: [`/bin/${name}`],
      })),
  };
  const want: Wanted = { id: "fake@1.0.0", name: "fake", target: { version: "1.0.0", arch: "amd64" }, part };
  // As if it had been built.
  await once(buildKey(want), async (to) => {
    await writeFile(join(to, "tool"), "tool", { mode: 0o755 });
    await symlink("tool", join(to, "other"));
  });
  const { files, images } = await ensurePublished(want);
  const read = (url: string) => readFile(files.get(url) ?? "");
  const archive = await read("dl.example/tool.tgz");
  assert.equal(String(await read("dl.example/tool")), "tool");
  assert.equal(String(await read("dl.example/tool.sha256")), `${sha256(Buffer.from("tool"))}\n`);
  assert.equal(String(await read("dl.example/SUMS")), `${sha256(archive)}  tool.tgz\n`);
  const { stdout } = await run("tar", ["-tvzf", files.get("dl.example/tool.tgz") ?? ""]);
  assert.match(stdout, /bin\/tool\n.*bin\/other -> tool\n/s);
  assert.deepEqual(images.map(({ ref }) => basename(ref)).sort(), ["a:1", "b:1"]);
  assert.deepEqual(images[0]?.blobs.slice(1), images[1]?.blobs.slice(1));
  // Two layers, two configurations, two manifests.
  assert.equal(await checkBlobs(images[0]?.layout ?? ""), 6);
});
