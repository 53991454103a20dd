import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { basename, dirname } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { DISK_CODES, UserError, codeOf, messageOf } from "./errors.js";
import { type GetOptions, HttpError, SilenceError, UselessError, get, openUrl } from "./http.js";

export interface Address {
  url: string;
  /** Certificates to trust for this address. */
  ca?: string;
}

export interface Attempts {
  /** Rounds over all addresses; 4 when not given. */
  attempts?: number;
  /** What a person can do when no address is left. */
  advice?: string;
  onFailure?: (url: string, reason: string) => void;
}

export interface Download extends Omit<GetOptions, "first">, Attempts {
  /** The same file at several places, tried in this order. */
  urls: readonly (string | Address)[];
  sha256: string;
  to: string;
  /** What people call it; the name of `to` when not given. */
  what?: string;
  /** Keeps what has come so far, so that another download, even after a kill, goes on from there. One writer at a time. */
  partial?: string;
  onProgress?: (received: number, total: number | undefined) => void;
}

class ChecksumError extends UserError {}

const FIRST_PAUSE_MS = 250;
const TRY_AGAIN_LATER = [408, 425, 429];
const DISK_ERRORS = [...DISK_CODES, "EISDIR"];
const ADVICE = "check the network (HTTPS_PROXY and NO_PROXY are respected)";

async function hashOf(file: string) {
  const hash = createHash("sha256");
  // Not by a pipeline, which would end the hash: more may follow.
  for await (const part of createReadStream(file)) hash.update(part as Buffer);
  return hash;
}

export const sha256Of = async (file: string): Promise<string> => (await hashOf(file)).digest("hex");

/** A fault of this machine, for which no other address is better. */
const isOfDisk = (error: unknown) =>
  DISK_ERRORS.includes(codeOf(error) ?? "") && (error as NodeJS.ErrnoException).syscall !== "connect";

/** How often an address may fail in this way before it is given up. */
function patienceWith(error: unknown): number {
  if (error instanceof HttpError) return error.status < 500 && !TRY_AGAIN_LATER.includes(error.status) ? 1 : Infinity;
  if (error instanceof UselessError) return 1;
  return error instanceof ChecksumError || error instanceof SilenceError ? 2 : Infinity;
}

/** No address is left, and why. */
export class NothingGoodError extends UserError {
  constructor(
    message: string,
    readonly reasons: readonly unknown[],
  ) {
    super(message);
  }
}

/** Servers that kept us waiting in vain: other files of this run need not wait for them again, unless nobody else is left. */
const silent = new Set<string>();
const serverOf = ({ url }: Address) => new URL(url).origin;

/** The first good result of several addresses, in rounds with a growing pause between; the error lists every address with its reason. */
export async function firstGood<T>(
  what: string,
  addresses: readonly Address[],
  attempt: (address: Address) => Promise<T>,
  { attempts = 4, advice = ADVICE, onFailure }: Attempts = {},
): Promise<T> {
  const failed = new Map<Address, { error: unknown; times: number }>();
  const left = () => {
    const patient = addresses.filter((address) => {
      const failure = failed.get(address);
      return failure === undefined || failure.times < patienceWith(failure.error);
    });
    const isSilent = (address: Address) => silent.has(serverOf(address));
    return [...patient.filter((address) => !isSilent(address)), ...patient.filter(isSilent)];
  };
  for (let round = 0; round < attempts && left().length > 0; round++) {
    if (round > 0) await sleep(FIRST_PAUSE_MS * 4 ** (round - 1));
    for (const address of left()) {
      try {
        return await attempt(address);
      } catch (error) {
        if (isOfDisk(error)) throw error;
        if (error instanceof SilenceError) silent.add(serverOf(address));
        failed.set(address, { error, times: (failed.get(address)?.times ?? 0) + 1 });
        onFailure?.(openUrl(address.url), messageOf(error));
      }
    }
  }
  const reasons = [...failed].map(([{ url }, { error }]) => `  ${openUrl(url)}: ${messageOf(error)}`);
  throw new NothingGoodError(
    [`cannot download ${what}:`, ...reasons, `  what to do: ${advice}`].join("\n"),
    [...failed.values()].map(({ error }) => error),
  );
}

/** The byte that the body begins with. */
function firstByte({ statusCode, headers }: IncomingMessage): number {
  return statusCode === 206 ? Number(/^bytes (\d+)-/.exec(headers["content-range"] ?? "")?.[1]) : 0;
}

const sizeOf = (file: string) =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

async function open({ url, ca }: Address, file: string, options: GetOptions): Promise<IncomingMessage> {
  const first = await sizeOf(file);
  const trust = ca === undefined ? {} : { ca };
  try {
    const body = await get(url, { ...options, ...trust, first });
    const begins = firstByte(body);
    if (begins === first || begins === 0) return body;
    body.destroy();
  } catch (error) {
    if (first === 0 || !(error instanceof HttpError) || error.status !== 416) throw error;
  }
  // What is here does not go with what is there.
  await rm(file, { force: true });
  return get(url, { ...options, ...trust });
}

async function fetchTo(address: Address, file: string, { sha256, onProgress, ...options }: Download): Promise<void> {
  const body = await open(address, file, options);
  if (/^text\/html\b/.test(body.headers["content-type"] ?? "")) {
    body.destroy();
    throw new UselessError("a web page came, not the file");
  }
  const first = firstByte(body);
  const hash = first > 0 ? await hashOf(file) : createHash("sha256");
  const length = Number(body.headers["content-length"]);
  const total = Number.isNaN(length) ? undefined : first + length;
  let received = first;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      hash.update(chunk);
      received += chunk.length;
      onProgress?.(received, total);
      next(null, chunk);
    },
  });
  await pipeline(body, count, createWriteStream(file, { flags: first > 0 ? "a" : "w" }));
  const found = hash.digest("hex");
  if (found === sha256.toLowerCase()) return;
  await rm(file, { force: true });
  throw new ChecksumError(`its sha256 is ${found}, expected ${sha256}; refused`);
}

/** Brings a file whose checksum is known to `to`. Nothing with another checksum ever has that name. */
export async function download(options: Download): Promise<void> {
  const { urls, to, partial, sha256, what = basename(to) } = options;
  const file = partial ?? `${to}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
  const addresses = urls.map((address) => (typeof address === "string" ? { url: address } : address));
  try {
    await mkdir(dirname(to), { recursive: true });
    await mkdir(dirname(file), { recursive: true });
    const whole = partial !== undefined && (await sizeOf(file)) > 0 && (await sha256Of(file)) === sha256;
    if (!whole) await firstGood(what, addresses, (address) => fetchTo(address, file, options), options);
    await rename(file, to);
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    const advice = "free some space there, or set KUBEXM_CACHE to another folder";
    throw new UserError(`cannot keep ${what} in ${dirname(file)}: ${messageOf(error)}; ${advice}`, { cause: error });
  } finally {
    if (partial === undefined) await rm(file, { force: true });
  }
}
