import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, stat, type FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { pipeline } from "node:stream/promises";
import PQueue from "p-queue";
import type { ClientChannel } from "ssh2";
import { RemoteError, UserError, textOf } from "../errors";
import { literal, sh, type Command } from "../shell";
import { judged, knowElevation, perform, run, SHELL_SETUP, type Job, type Seat } from "./exec";
import { failure } from "./failure";
import { roundTrip } from "./link";
import type { Upload } from "./remote";

const UPLOADS_AT_ONCE = 5;
/** Sessions that carry blocks. */
const STRIPES = 4;
const BLOCK = 2 * 1024 * 1024;
const WRITE = 128 * 1024;
/** Every one costs the same. */
const PIECE = 512 * 1024;
/** One channel carries 2 MiB per round trip, 200 MB/s at 10 ms, which is more than one process sends: several gain beyond that only. */
const STRIPED_FROM = { bytes: 8 * 1024 * 1024, rttMs: 10 };
const TIMEOUT = { baseS: 120, bytesPerS: 128 * 1024 };
const WRONG_CONTENT = 65;
const NO_PLACE = 73;

const uploads = new PQueue({ concurrency: UPLOADS_AT_ONCE });

/** One try to bring a file to a host. */
interface Try {
  seat: Seat;
  body: Upload;
  file: FileHandle;
  /** Sets where it goes, and what it is called until it is checked; on one line. */
  place: Command;
  timeoutS: number;
  /** Why it could not be read here. */
  problem?: unknown;
}

const tempOf = (to: string) =>
  posix.join(posix.dirname(to), `.${posix.basename(to)}.${randomBytes(6).toString("hex")}`);

/** What was to wait elsewhere when the nearest folder was another one. */
const former = sh`if [ -L "$to" ]; then o=$(readlink -- "$to"); rm -f -- "$o" "${literal("${o%/*}/.${o##*/}")}".*; fi;`;

/** In the nearest folder that is there. The link comes first: by it is found what a killed run leaves. */
function elsewhere(waitsAt: string): Command {
  const [folder, name, temp] = [posix.dirname(waitsAt), posix.basename(waitsAt), posix.basename(tempOf(waitsAt))];
  const nearest = sh`n=${folder}; until [ -d "$n" ]; do n=${literal("${n%/*}")}; [ -n "$n" ] || n=/; done;`;
  const linked = sh`ln -sfn -- "$n/"${name} "$to" || exit ${NO_PLACE}; to=$n/${name} t=$n/${temp};`;
  return sh`${former} ${nearest} set -- $(stat -L -c %d -- "$n" "$dir"); if [ "$1" != "$2" ] && [ -w "$n" ]; then ${linked} fi;`;
}

/** Names are set once and used quoted, so that the rest of the program is constant. */
function placeOf({ to, waitsAt }: Upload): Command {
  return sh`umask 077; t=${tempOf(to)} to=${to} dir=${posix.dirname(to)}; [ -d "$dir" ] || mkdir -p -- "$dir" || exit ${NO_PLACE}; ${waitsAt === undefined ? sh`:;` : elsewhere(waitsAt)}`;
}

const header = ({ place }: Try): Command => sh`${SHELL_SETUP}; ${place}`;

const REMOVE_ON_EXIT = sh`trap 'rm -f -- "$t"' EXIT; trap 'exit 143' HUP INT TERM;`;

/** openssl knows the processor's SHA instructions and is four times as fast; starting it pays for big bodies only. */
const SHA256 = sh`h=sha256sum;`;
const SHA256_BIG = sh`${SHA256} command -v openssl >/dev/null && h="openssl dgst -sha256 -r";`;
const hasher = ({ body }: Try) => (body.bytes >= STRIPED_FROM.bytes ? SHA256_BIG : SHA256);

/**
 * $r holds what the hash program said of the content; only then the file takes its place. The disk begins with it at once, beside
 * what is sent next: whoever moves it on and syncs it then waits the less.
 */
function finish({ body }: Try): Command {
  return sh`case "$r" in *${body.sha256}*) ;; *) echo "the content on the host has the sha256 $r" >&2; exit ${WRONG_CONTENT};; esac; mv -fT -- "$t" "$to" || exit; sync "$to" </dev/null >/dev/null 2>&1 &`;
}

/** Hashed out of the host's memory afterwards: to do both at once, through pipes, takes twice the time. */
const wholeProgram = (it: Try) =>
  sh`${header(it)} ${REMOVE_ON_EXIT} ${hasher(it)} set -C; cat >"$t" || exit 74; r=$($h <"$t"); ${finish(it)}`;
/**
 * Each block comes after a line with its number and length, and goes to its place in the file; by small writes, as for a large
 * one dd takes new memory every time.
 */
const blocksProgram = (it: Try) =>
  sh`${header(it)} while IFS=' ' read -r i bytes && [ "$i" != end ]; do dd of="$t" bs=${WRITE} seek="$((i * ${BLOCK / WRITE}))" count="$bytes" conv=notrunc iflag=fullblock,count_bytes status=none || exit; done;`;
/** Of the session that is told when all blocks are there. */
const lastProgram = (it: Try) =>
  sh`${blocksProgram(it)} [ "$i" = end ] || exit 74; ${REMOVE_ON_EXIT} ${hasher(it)} r=$($h <"$t"); ${finish(it)}`;

const isOpen = (channel: ClientChannel) => channel.writable && !channel.destroyed;

/** Waits until the channel has taken all of it, so that little lies about in memory; false when the other side has ended. */
function put(channel: ClientChannel, data: Buffer): Promise<boolean> {
  if (!isOpen(channel)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (taken: boolean) => {
      channel.off("close", onEnd).off("exit", onEnd);
      resolve(taken);
    };
    const onEnd = () => settle(false);
    channel.once("close", onEnd).once("exit", onEnd);
    channel.write(data, (error) => settle(!error));
  });
}

/** What may be asked for from there on: a file that grows is sent as far as was announced. */
const lengthAt = ({ bytes }: Upload, at: number, most: number) => Math.min(most, bytes - at);

/** All through one buffer: what Node is given anew for each piece, gigabytes of it, costs as much to clear away as to send. */
async function sendWhole(channel: ClientChannel, { file, body }: Try): Promise<void> {
  const piece = Buffer.allocUnsafeSlow(lengthAt(body, 0, PIECE));
  for (let at = 0; at < body.bytes;) {
    const { bytesRead } = await file.read(piece, 0, lengthAt(body, at, PIECE), at);
    if (bytesRead === 0 || !(await put(channel, piece.subarray(0, bytesRead)))) return;
    at += bytesRead;
  }
}

async function sendBlocks(channel: ClientChannel, { file, body }: Try, numbers: Iterator<number>): Promise<void> {
  const block = Buffer.allocUnsafeSlow(BLOCK);
  for (let next = numbers.next(); next.done !== true; next = numbers.next()) {
    const at = next.value * BLOCK;
    const bytes = await readFull(file, block, at, lengthAt(body, at, BLOCK));
    channel.write(`${next.value} ${bytes}\n`);
    if (!(await put(channel, block.subarray(0, bytes)))) return;
  }
}

/** A file system of the network may give less at once than it was asked for. */
async function readFull(file: FileHandle, into: Buffer, at: number, length: number): Promise<number> {
  let got = 0;
  for (let bytes = 1; bytes > 0 && got < length; got += bytes)
    bytes = (await file.read(into, got, length - got, at + got)).bytesRead;
  return got;
}

function job(it: Try, program: Command, title: string, send: (channel: ClientChannel) => Promise<void>): Job {
  return {
    program: "line",
    lane: "transfers",
    root: true,
    title,
    timeoutS: it.timeoutS,
    signal: it.body.signal,
    feed: (channel) => {
      channel.write(`${program.text}\n`);
      // Ending stdin in every case: the host then sees what is missing, and its exit code tells.
      void send(channel)
        .catch((error: unknown) => (it.problem = error))
        .finally(() => channel.end());
    },
  };
}

async function performed(it: Try, task: Job): Promise<void> {
  judged(it.seat.target, task, await perform(it.seat, task));
}

async function whole(it: Try): Promise<void> {
  await performed(
    it,
    job(it, wholeProgram(it), `upload ${it.body.to}`, (channel) => sendWhole(channel, it)),
  );
}

/** Decided once for all sessions: other folders may be there when the next one begins. */
async function fixedPlace(seat: Seat, { to, waitsAt, signal }: Upload, place: Command): Promise<Command> {
  if (waitsAt === undefined) return place;
  const how = { title: `upload ${to}`, timeout: 60, ...(signal && { signal }) };
  const { stdout } = await run(seat, sh`${place} printf '%s\n' "$t" "$to"`, how);
  const [temp = "", there = ""] = stdout.split("\n");
  return sh`umask 077; t=${temp} to=${there};`;
}

/** Blocks go over several sessions to whichever is free. */
async function striped(it: Try): Promise<void> {
  const numbers = Array.from({ length: Math.ceil(it.body.bytes / BLOCK) }, (_, i) => i).values();
  const title = `upload ${it.body.to}`;
  const begun = new Set<number>();
  const blocks = async (channel: ClientChannel, i: number) => {
    begun.add(i);
    await sendBlocks(channel, it, numbers);
  };
  /** Those that have not begun, as the host allows fewer sessions, have nothing to carry any more. */
  const last = async (channel: ClientChannel) => {
    await sendBlocks(channel, it, numbers);
    const ends = await Promise.allSettled(others.filter((_, i) => begun.has(i)));
    if (ends.every(({ status }) => status === "fulfilled") && isOpen(channel)) channel.write("end\n");
  };
  const session = (program: Command, send: (channel: ClientChannel) => Promise<void>) =>
    performed(it, job(it, program, title, send));
  const others = Array.from({ length: STRIPES - 1 }, (_, i) =>
    session(blocksProgram(it), (channel) => blocks(channel, i)),
  );
  const ends = await Promise.allSettled([...others, session(lastProgram(it), last)]);
  const failed = ends.find((end) => end.status === "rejected");
  if (!failed) return;
  await run(it.seat, sh`${it.place} rm -f -- "$t"`, { timeout: 30 }).catch(() => undefined);
  throw failed.reason;
}

async function attempt(seat: Seat, body: Upload): Promise<void> {
  const timeoutS = Math.ceil(body.timeout ?? TIMEOUT.baseS + body.bytes / TIMEOUT.bytesPerS);
  const file = await open(body.path).catch((error: unknown) => {
    throw unreadable(body, error);
  });
  const it: Try = { seat, body, file, place: placeOf(body), timeoutS };
  try {
    const far = body.bytes >= STRIPED_FROM.bytes && (await roundTrip(seat.link)) >= STRIPED_FROM.rttMs;
    if (far) it.place = await fixedPlace(seat, body, it.place);
    await (far ? striped(it) : whole(it));
  } catch (error) {
    throw await explained(it, error);
  } finally {
    await file.close();
  }
}

const unreadable = ({ to }: Upload, cause: unknown) =>
  new UserError(`${to}: what was to be uploaded could not be read: ${textOf(cause)}`, { cause });

/** What is to be said of it, where it is not what was announced. */
async function otherwise({ to, path, bytes, sha256 }: Upload): Promise<UserError | undefined> {
  const hash = createHash("sha256");
  const { size } = await stat(path);
  await pipeline(createReadStream(path), hash);
  const sum = hash.digest("hex");
  return size === bytes && sum === sha256
    ? undefined
    : new UserError(
        `${to}: what was to be uploaded is not what was announced: ${size} bytes with the sha256 ${sum}, not ${bytes} with ${sha256}; it changed meanwhile, or the checksum is wrong`,
      );
}

/** What is really behind a failed upload: our own file, a full disk, or damage on the way. */
async function explained({ seat, body, problem }: Try, error: unknown): Promise<unknown> {
  if (!(error instanceof RemoteError) || error.failure.reason !== "exit") return error;
  const folder = posix.dirname(error.failure.code === NO_PLACE ? body.to : (body.waitsAt ?? body.to));
  if (problem !== undefined) return unreadable(body, problem);
  if (error.failure.code === WRONG_CONTENT)
    return (await otherwise(body).catch((cause: unknown) => unreadable(body, cause))) ?? error;
  if (/no space left on device|disk quota exceeded/i.test(error.failure.stderr ?? ""))
    return failure(seat.target.label, "exit", `the disk is full: ${body.bytes} bytes do not fit below ${folder}`, {
      command: `upload ${body.to}`,
      code: error.failure.code ?? 1,
      stderr: error.failure.stderr ?? "",
      advice: `make room under ${folder} on the host; the old file, if any, is untouched`,
    });
  return error;
}

/** Damage and a broken connection deserve a second try; all else would fail the same way. */
function worthAnother(error: unknown): boolean {
  if (!(error instanceof RemoteError)) return false;
  return error.failure.reason === "disconnected" || error.failure.code === WRONG_CONTENT;
}

function damaged(seat: Seat, body: Upload, error: unknown): unknown {
  if (!(error instanceof RemoteError) || error.failure.code !== WRONG_CONTENT) return error;
  return failure(
    seat.target.label,
    "exit",
    `the content of ${body.to} arrived damaged, twice; it was not put in place`,
    {
      command: `upload ${body.to}`,
      stderr: `${error.failure.stderr ?? ""}\nwanted is the sha256 ${body.sha256}`,
      advice: "check the disk and the memory of the host",
    },
  );
}

async function send(seat: Seat, body: Upload): Promise<void> {
  if (/[\n\0]/.test(body.to + (body.waitsAt ?? "")))
    throw new UserError(`the path ${JSON.stringify(body.to)} holds a newline or NUL`);
  await knowElevation(seat);
  try {
    return await attempt(seat, body);
  } catch (first) {
    if (!worthAnother(first)) throw first;
  }
  await attempt(seat, body).catch((error: unknown) => {
    throw damaged(seat, body, error);
  });
}

/** Brings a file to the host, checked there before it takes its place; five at once from this process. */
export async function upload(seat: Seat, body: Upload): Promise<void> {
  await uploads.add(() => send(seat, body));
}
