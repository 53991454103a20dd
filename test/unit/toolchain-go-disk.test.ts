import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { goNeed, wanted } from "../../lab/mirror/build.js";
import { compiledSize, needGoDisk, shares, stillNeeded } from "../../toolchain/go-disk.js";

const GIB = 2 ** 30;
const saved = { ...process.env };
let dir = "";

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-go-"));
  const go = `#!/bin/sh\n[ "$2" != GOVERSION ] || { echo go1.99.0; exit 0; }\necho ${dir}/go-build\necho ${dir}/mod\n`;
  await writeFile(join(dir, "go"), go);
  await chmod(join(dir, "go"), 0o755);
  process.env["PATH"] = [dir, process.env["PATH"]].join(delimiter);
  process.env["KUBEXM_CACHE"] = join(dir, "cache");
});

after(async () => {
  process.env = saved;
  await rm(dir, { recursive: true, force: true });
});

for (const [what, cold, compiled, want] of [
  ["nothing is compiled", 11, 0, 11],
  ["half is compiled", 12, 3.6, 6],
  ["all is compiled", 11, 8, 1],
  ["much else is compiled", 3, 40, 1],
] as const)
  test(`what Go's caches still need: ${what}`, () =>
    assert.equal(Math.round(stillNeeded(cold * GIB, compiled * GIB) / GIB), want));

test("compiled packages and modules on disks of their own each have to have room for their share", () => {
  assert.deepEqual(shares(10, "/c", "/m", true), [["/c", 10]]);
  assert.deepEqual(shares(10, "/c", "/m", false), [
    ["/c", 6],
    ["/m", 4],
  ]);
});

test("the size of Go's cache is told from some of its folders; one that is not there is empty", async () => {
  assert.equal(await compiledSize(join(dir, "none")), 0);
  for (let i = 0; i < 256; i++) {
    const folder = join(dir, "even", i.toString(16).padStart(2, "0"));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "a"), Buffer.alloc(1000));
  }
  assert.equal(await compiledSize(join(dir, "even")), 256_000);
});

test("too little disk for Go is told with folder, need and how to move it, before the build", async () => {
  await needGoDisk(1, "A little");
  await assert.rejects(needGoDisk(2 ** 60, "Building all"), (error: Error) => {
    assert.match(error.message, /^Building all needs 1073741824\.0 GiB free in .*\/go-build, there are .*GiB: /);
    for (const name of ["GOCACHE", "GOMODCACHE", "KUBEXM_CACHE"]) assert.match(error.message, new RegExp(name));
    return error.name === "UserError";
  });
});

test("only what is not built yet, and is built by Go, needs room", async () => {
  const [kubernetes, helm, pause] = [wanted("kubernetes", "amd64"), wanted("helm", "amd64"), wanted("pause", "amd64")];
  assert.equal(await goNeed([kubernetes, helm, pause]), 6.5 * GIB);
  assert.equal(await goNeed([pause]), 0);
});
