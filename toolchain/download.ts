import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError, messageOf } from "./errors.js";
import { type GetOptions, HttpError, get } from "./http.js";

export interface Download extends GetOptions {
  /** The same file at several places, tried in this order. */
  urls: readonly string[];
  sha256: string;
  to: string;
  /** Rounds over all addresses; 4 when not given. */
  attempts?: number;
  onProgress?: (received: number, total: number | undefined) => void;
}

class ChecksumError extends UserError {}

const FIRST_PAUSE_MS = 250;
const TRY_AGAIN_LATER = [408, 425, 429];

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** Asking again brings the same answer. */
function final(error: unknown): boolean {
  if (error instanceof HttpError) return error.status < 500 && !TRY_AGAIN_LATER.includes(error.status);
  return error instanceof ChecksumError;
}

async function fetchTo(url: string, file: string, { sha256, onProgress, ...options }: Download): Promise<void> {
  const body = await get(url, options);
  const length = Number(body.headers["content-length"]);
  const total = Number.isNaN(length) ? undefined : length;
  const hash = createHash("sha256");
  let received = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      hash.update(chunk);
      received += chunk.length;
      onProgress?.(received, total);
      next(null, chunk);
    },
  });
  await pipeline(body, count, createWriteStream(file));
  const found = hash.digest("hex");
  if (found !== sha256.toLowerCase()) throw new ChecksumError(`its sha256 is ${found}, expected ${sha256}; refused`);
}

/** Brings a file whose checksum is known to `to`. Nothing with another checksum ever has that name. */
export async function download(what: Download): Promise<void> {
  const { urls, to, attempts = 4 } = what;
  await mkdir(dirname(to), { recursive: true });
  const file = `${to}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
  const failures = new Map<string, unknown>();
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await sleep(FIRST_PAUSE_MS * 4 ** (attempt - 1));
      for (const url of urls.filter((url) => !final(failures.get(url)))) {
        try {
          await fetchTo(url, file, what);
          await rename(file, to);
          return;
        } catch (error) {
          failures.set(url, error);
        }
      }
      if ([...failures.values()].every(final)) break;
    }
  } finally {
    await rm(file, { force: true });
  }
  const reasons = [...failures].map(([url, error]) => `  ${url}: ${messageOf(error)}`);
  throw new UserError(
    [
      `cannot download ${basename(to)}:`,
      ...reasons,
      "  what to do: check the network (HTTPS_PROXY and NO_PROXY are respected)",
    ].join("\n"),
  );
}
