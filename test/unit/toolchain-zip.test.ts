import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { unzip } from "../../toolchain/zip.js";

let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubexm-zip-"));
});

after(() => rm(folder, { recursive: true, force: true }));

/** A record of `size` bytes with little-endian numbers at their places, then what follows it. */
function record(size: number, fields: readonly [at: number, bytes: 2 | 4, value: number][], ...rest: Buffer[]): Buffer {
  const head = Buffer.alloc(size);
  for (const [at, bytes, value] of fields) head.writeUIntLE(value, at, bytes);
  return Buffer.concat([head, ...rest]);
}

/** A zip with every other entry compressed, and an extra field before each body as real ones have. */
function zipOf(contents: Record<string, string>): Buffer {
  const extra = Buffer.from("extra");
  const parts: Buffer[] = [];
  let at = 0;
  const directory = Object.entries(contents).map(([name, text], i) => {
    const method = i % 2 === 0 ? 8 : 0;
    const raw = Buffer.from(text);
    const body = method === 8 ? deflateRawSync(raw) : raw;
    const local = record(
      30,
      [
        [0, 4, 0x04034b50],
        [26, 2, Buffer.byteLength(name)],
        [28, 2, extra.length],
      ],
      Buffer.from(name),
      extra,
      body,
    );
    parts.push(local);
    const entry = record(
      46,
      [
        [0, 4, 0x02014b50],
        [10, 2, method],
        [20, 4, body.length],
        [24, 4, raw.length],
        [28, 2, Buffer.byteLength(name)],
        [42, 4, at],
      ],
      Buffer.from(name),
    );
    at += local.length;
    return entry;
  });
  const end = record(
    22,
    [
      [0, 4, 0x06054b50],
      [10, 2, directory.length],
      [16, 4, at],
      [20, 2, 7],
    ],
    Buffer.from("comment"),
  );
  return Buffer.concat([...parts, ...directory, end]);
}

async function unpacked(name: string, zip: Buffer): Promise<string> {
  const file = join(folder, `${name}.zip`);
  await writeFile(file, zip);
  const to = join(folder, name);
  await unzip(file, to, "mod@v1/", (path) => path.startsWith("bin/"));
  return to;
}

test("files under the prefix arrive, compressed or not, with the modes that are asked for", async () => {
  const to = await unpacked(
    "good",
    zipOf({ "mod@v1/bin/tool": "run me", "mod@v1/a/b.txt": "ä".repeat(999), "other/x": "x" }),
  );
  assert.equal(await readFile(join(to, "bin", "tool"), "utf8"), "run me");
  assert.equal(await readFile(join(to, "a", "b.txt"), "utf8"), "ä".repeat(999));
  assert.deepEqual((await readdir(to)).sort(), ["a", "bin"]);
  assert.equal((await stat(join(to, "bin", "tool"))).mode & 0o777, 0o755);
  assert.equal((await stat(join(to, "a", "b.txt"))).mode & 0o111, 0);
});

for (const [what, zip, message] of [
  ["a path that leads out", zipOf({ "mod@v1/../../evil": "x" }), /leads out of it: mod@v1\/\.\.\/\.\.\/evil$/],
  ["no zip at all", Buffer.from("<html>".repeat(20)), /no zip file$/],
  ["an empty file", Buffer.alloc(0), /no zip file$/],
] as const)
  test(`refused: ${what}`, async () => {
    await assert.rejects(unpacked("refused", zip), message);
    assert.equal((await readdir(folder)).includes("evil"), false);
  });
