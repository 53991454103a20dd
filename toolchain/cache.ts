import { randomBytes } from "node:crypto";
import { access, mkdir, readdir, rename, rm, statfs } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "./errors.js";
import { alive, owner } from "./owner.js";

/** Where everything that can be made again is kept, outside any checkout. */
export function cacheDir(): string {
  const { KUBEXM_CACHE, XDG_CACHE_HOME } = process.env;
  if (KUBEXM_CACHE) return resolve(KUBEXM_CACHE);
  return join(XDG_CACHE_HOME ? resolve(XDG_CACHE_HOME) : join(homedir(), ".cache"), "kubexm");
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const remove = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 3 });

/** Folders `<path>.tmp-<owner>-…` of living processes, without `own`; those of dead ones are removed. */
async function others(path: string, own: string | undefined): Promise<string[]> {
  const prefix = `${basename(path)}.tmp-`;
  const claims = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix) && name !== own);
  const dead = claims.filter((name) => !alive(name.slice(prefix.length)));
  await Promise.all(dead.map((name) => remove(join(dirname(path), name))));
  return claims.filter((name) => !dead.includes(name));
}

/**
 * Makes a folder of our own beside `path` if nobody else has one. The folder is claim and workplace at once, and its
 * name tells the owner: there is no lock file that could be taken from a living process by mistake.
 */
async function claim(path: string): Promise<string | undefined> {
  if ((await others(path, undefined)).length > 0) return undefined;
  const own = `${path}.tmp-${owner()}-${randomBytes(4).toString("hex")}`;
  await mkdir(own);
  // Of two that came at the same moment at least one sees the other here, and steps back.
  if ((await others(path, basename(own))).length === 0) return own;
  await remove(own);
  return undefined;
}

async function build(path: string, make: (dir: string) => Promise<void>): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  for (;;) {
    if (await exists(path)) return path;
    const own = await claim(path);
    if (own === undefined) {
      await sleep(50 + Math.random() * 200);
      continue;
    }
    try {
      if (await exists(path)) return path;
      await make(own);
      await rename(own, path);
      return path;
    } finally {
      await remove(own);
    }
  }
}

const running = new Map<string, Promise<string>>();

/**
 * The folder `<cache>/<key>`, filled by `make` the first time. Of several processes that come at once one fills it and the
 * others wait; what a killed process left is removed by the next.
 */
export function once(key: string, make: (dir: string) => Promise<void>): Promise<string> {
  const path = join(cacheDir(), key);
  const made = running.get(path) ?? build(path, make).finally(() => running.delete(path));
  running.set(path, made);
  return made;
}

/** A folder in the cache for the time of `use`; those of killed processes are removed on the way. */
export async function scratch<T>(name: string, use: (dir: string) => Promise<T>): Promise<T> {
  const path = join(cacheDir(), "tmp", name);
  await mkdir(dirname(path), { recursive: true });
  await others(path, undefined);
  const own = `${path}.tmp-${owner()}-${randomBytes(4).toString("hex")}`;
  await mkdir(own);
  try {
    return await use(own);
  } finally {
    await remove(own);
  }
}

export async function nearestExisting(path: string): Promise<string> {
  return (await exists(path)) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

const MOVE = "free some space, or set KUBEXM_CACHE to a folder on a larger disk";

/** Fails before a long build rather than in the middle of it. */
export async function needDisk(path: string, bytes: number, what: string, advice = MOVE): Promise<void> {
  const { bavail, bsize } = await statfs(await nearestExisting(resolve(path)));
  if (bavail * bsize >= bytes) return;
  throw new UserError(`${what} needs ${gib(bytes)} free in ${path}, there are ${gib(bavail * bsize)}: ${advice}`);
}
