import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

export type TarBody = { file: string } | { text: string } | { link: string } | { folder: true };

export interface TarEntry {
  /** Without a leading slash; at most 100 bytes. */
  path: string;
  mode?: number;
  body: TarBody;
}

const BLOCK = 512;
/** One date for everything, so that the same content always gives the same digest. */
export const EPOCH = new Date("2026-01-01T00:00:00Z");

const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;

const KINDS = { file: "0", text: "0", link: "2", folder: "5" } as const;
const MODES = { file: 0o755, text: 0o644, link: 0o777, folder: 0o755 } as const;

function kindOf(body: TarBody): keyof typeof KINDS {
  if ("file" in body) return "file";
  if ("text" in body) return "text";
  return "link" in body ? "link" : "folder";
}

function header({ path, mode, body }: TarEntry, size: number): Buffer {
  const kind = kindOf(body);
  const name = kind === "folder" && !path.endsWith("/") ? `${path}/` : path;
  const link = "link" in body ? body.link : "";
  if (Buffer.byteLength(name) > 100 || Buffer.byteLength(link) > 100) throw new RangeError(`${name}: too long for tar`);
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write(octal(mode ?? MODES[kind], 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(EPOCH.getTime() / 1000, 12), 136);
  block.fill(" ", 148, 156);
  block.write(KINDS[kind], 156);
  block.write(link, 157);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** A tar stream of these entries, all owned by root. */
export async function* tar(entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    const { body } = entry;
    const text = "text" in body ? Buffer.from(body.text) : undefined;
    const size = "file" in body ? (await stat(body.file)).size : (text?.length ?? 0);
    yield header(entry, size);
    if (text) yield text;
    if ("file" in body) yield* createReadStream(body.file) as AsyncIterable<Buffer>;
    if (size % BLOCK > 0) yield Buffer.alloc(BLOCK - (size % BLOCK));
  }
  yield Buffer.alloc(2 * BLOCK);
}

export interface Packed {
  size: number;
  /** Of the compressed file. */
  sha256: string;
  /** Of what is inside. */
  inner: string;
}

/** Writes a stream gzipped to a file and tells the digests of both forms. */
export async function gzipTo(source: AsyncIterable<Buffer>, to: string): Promise<Packed> {
  const inner = createHash("sha256");
  const outer = createHash("sha256");
  let size = 0;
  await pipeline(
    source,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        inner.update(chunk);
        yield chunk;
      }
    },
    createGzip(),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        outer.update(chunk);
        size += chunk.length;
        yield chunk;
      }
    },
    createWriteStream(to),
  );
  return { size, sha256: outer.digest("hex"), inner: inner.digest("hex") };
}

export async function sha256File(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
