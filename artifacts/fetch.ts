import { randomBytes } from "node:crypto";
import { chmod, copyFile, link, mkdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import PQueue from "p-queue";
import { UserError } from "../provider/errors";
import { cacheDir, once } from "../toolchain/cache";
import { download, sha256Of } from "../toolchain/download";
import { codeOf } from "../toolchain/errors";
import type { Address } from "./sources";
import type { Wanted } from "./wanted";

export type Tell = (text: string) => void;
export type Bytes = (received: number, total: number | undefined) => void;

const AT_ONCE = 4;
const ANSWER_MS = 20_000;
const TELL_MS = 1000;
const ADVICE =
  "check the network (HTTPS_PROXY and NO_PROXY are respected), or name a mirror in cluster.yaml (mirrors.files)";

const REBUILT = "; if the mirror has rebuilt its files, remove checksums.json from the folder of the cluster";

const queue = new PQueue({ concurrency: AT_ONCE });

/** Named by content: several files of a version may be the same program. */
const keyOf = (sha256: string) => join("files", sha256);
export const cached = (sha256: string) => join(cacheDir(), keyOf(sha256), "file");

async function trusting({ url, caPath }: Address) {
  if (caPath === undefined) return { url };
  const ca = await readFile(caPath, "utf8").catch((error: unknown) => {
    throw new UserError(
      `${caPath}: the mirror's certificate cannot be read (${codeOf(error) ?? ""}); correct mirrors.files in cluster.yaml`,
    );
  });
  return { url, ca };
}
export { trusting as readCa };

/** Those who wait for a file hear how it goes, whoever of them came first. */
const waiting = new Map<string, Set<{ bytes: Bytes; failed: Tell }>>();
const heard = (sha256: string) => [...(waiting.get(sha256) ?? [])];

/** What this process itself has fetched need not be read again. */
const checked = new Set<string>();

async function bring({ name, version, arch, sha256, addresses, rebuilt }: Wanted): Promise<void> {
  const get = async (dir: string) => {
    const to = join(dir, "file");
    await download({
      urls: await Promise.all(addresses.map(trusting)),
      sha256,
      to,
      what: `${name} ${version} for ${arch}`,
      partial: join(cacheDir(), "partial", sha256),
      answerTimeoutMs: ANSWER_MS,
      advice: ADVICE + (rebuilt ? REBUILT : ""),
      onProgress: (...bytes) => heard(sha256).forEach((one) => one.bytes(...bytes)),
      onFailure: (url, reason) => heard(sha256).forEach((one) => one.failed(`${url}: ${reason}`)),
    });
    // It is linked into folders where people work, and where kubectl may be run.
    await chmod(to, 0o555);
    checked.add(sha256);
  };
  const fill = () => once(keyOf(sha256), (dir) => queue.add(() => get(dir)));
  const dir = await fill();
  if (checked.has(sha256) || (await sha256Of(join(dir, "file")).catch(() => "")) === sha256) return;
  // Somebody or the disk changed it since.
  await rm(dir, { recursive: true, force: true });
  await fill();
}

const brought = new Map<string, Promise<void>>();

/** In the cache and checked, once in the life of this process. */
function ensure(wanted: Wanted): Promise<void> {
  const { sha256 } = wanted;
  const running = brought.get(sha256) ?? bring(wanted);
  brought.set(sha256, running);
  // A failure is not kept.
  running.catch(() => brought.delete(sha256));
  return running;
}

/** The same file under another name: a hard link, or a copy where that cannot be. */
async function linkTo(path: string, source: string): Promise<void> {
  const [from, there] = [await stat(source), await stat(path).catch(() => undefined)];
  if (there?.ino === from.ino && there.dev === from.dev) return;
  if (there?.size === from.size && Math.abs(there.mtimeMs - from.mtimeMs) < 2) return;
  await mkdir(dirname(path), { recursive: true });
  // Several hosts may want the same file at once.
  const fresh = `${path}.tmp-${randomBytes(6).toString("hex")}`;
  try {
    await link(source, fresh);
  } catch (error) {
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes(codeOf(error) ?? "")) throw error;
    await copyFile(source, fresh);
    await utimes(fresh, from.atime, from.mtime);
  }
  await rename(fresh, path);
  // Renaming onto another link of the same file does nothing.
  await rm(fresh, { force: true });
}

const megabytes = (bytes: number) => Math.round(bytes / 1e6);

/** At most one line in a second. */
function inWords(name: string, tell: Tell): Bytes {
  let told = Date.now();
  return (received, total) => {
    if (Date.now() - told < TELL_MS) return;
    told = Date.now();
    tell(`${name} ${megabytes(received)} ${total === undefined ? "" : `of ${megabytes(total)} `}MB`);
  };
}

/** Brings a file into the cache, and into the folder of the cluster that KUBEXM_CLUSTER_DIR names. */
export async function fetchFile(wanted: Wanted, tell: Tell, bytes: Bytes = inWords(wanted.name, tell)): Promise<void> {
  const { name, sha256, place } = wanted;
  const one = { bytes, failed: (reason: string) => tell(`${name}: ${reason}`) };
  const all = waiting.get(sha256) ?? new Set();
  waiting.set(sha256, all.add(one));
  try {
    await ensure(wanted);
    const cluster = process.env["KUBEXM_CLUSTER_DIR"];
    if (cluster) await linkTo(join(cluster, place), cached(sha256));
  } finally {
    all.delete(one);
  }
}
