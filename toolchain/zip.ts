import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { inflateRawSync } from "node:zlib";
import { UserError } from "./errors.js";

const END = 0x06054b50;
const END_SIZE = 22;
const ENTRY = 0x02014b50;
const ENTRY_SIZE = 46;
const LOCAL_SIZE = 30;
const DEFLATED = 8;

interface Entry {
  name: string;
  body: () => Buffer;
}

function* entries(zip: Buffer): Generator<Entry> {
  let end = zip.length - END_SIZE;
  while (end >= 0 && zip.readUInt32LE(end) !== END) end--;
  if (end < 0) throw new UserError("this is no zip file");
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (zip.readUInt32LE(at) !== ENTRY) throw new UserError("the zip file's directory is damaged");
    const method = zip.readUInt16LE(at + 10);
    const size = zip.readUInt32LE(at + 20);
    const nameSize = zip.readUInt16LE(at + 28);
    const local = zip.readUInt32LE(at + 42);
    yield {
      name: zip.toString("utf8", at + ENTRY_SIZE, at + ENTRY_SIZE + nameSize),
      body: () => {
        const from = local + LOCAL_SIZE + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
        const raw = zip.subarray(from, from + size);
        return method === DEFLATED ? inflateRawSync(raw) : raw;
      },
    };
    at += ENTRY_SIZE + nameSize + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
}

/** Unpacks what lies under `prefix` into `to`. A module zip carries no modes: `executable` tells which files need one. */
export async function unzip(
  file: string,
  to: string,
  prefix: string,
  executable: (name: string) => boolean,
): Promise<void> {
  for (const { name, body } of entries(await readFile(file))) {
    const inner = normalize(name.slice(prefix.length));
    if (!name.startsWith(prefix) || name.endsWith("/")) continue;
    if (inner.startsWith("..")) throw new UserError(`${file} holds a path that leads out of it: ${name}`);
    const path = join(to, inner);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, body());
    if (executable(inner)) await chmod(path, 0o755);
  }
}
