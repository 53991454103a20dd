import { readdir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { nearestExisting, needDisk } from "./cache.js";
import { goEnvironment } from "./go.js";

/** Of what a build leaves in Go's caches this much is in the one of compiled packages; the rest are modules. */
const COMPILED = 0.6;
/** Even where everything is compiled, programs are linked. */
const LEAST = 2 ** 30;
/** Go spreads what it keeps evenly over 256 folders: some of them tell of all. */
const FOLDERS = 256;
const SAMPLE = Array.from({ length: 8 }, (_, i) => (i * 32).toString(16).padStart(2, "0"));

async function folderSize(path: string): Promise<number> {
  const names = await readdir(path).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(path, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((total, size) => total + size, 0);
}

/** About how much is in Go's cache of compiled packages. */
export async function compiledSize(cache: string): Promise<number> {
  const sizes = await Promise.all(SAMPLE.map((name) => folderSize(join(cache, name))));
  return (sizes.reduce((total, size) => total + size, 0) * FOLDERS) / SAMPLE.length;
}

/** What is still to come of `cold`, the need with empty caches, where so much is compiled: never more than that is asked for. */
export const stillNeeded = (cold: number, compiled: number) => Math.max(LEAST, cold - compiled / COMPILED);

/** Which folder has to have how much free: modules and compiled packages may be on disks of their own. */
export function shares(bytes: number, compiled: string, modules: string, sameDisk: boolean): [string, number][] {
  if (sameDisk) return [[compiled, bytes]];
  return [
    [compiled, bytes * COMPILED],
    [modules, bytes * (1 - COMPILED)],
  ];
}

const diskOf = async (path: string) => (await stat(await nearestExisting(path))).dev;

const ADVICE =
  "free some space (go clean -cache -modcache empties Go's caches), or set GOCACHE and GOMODCACHE to folders on a larger disk, as KUBEXM_CACHE for kubexm's own";

/** Fails before a build that Go's own caches, which are elsewhere than ours and larger, have no room for. */
export async function needGoDisk(cold: number, what: string): Promise<void> {
  if (cold === 0) return;
  const [compiled = "", modules = ""] = await goEnvironment("GOCACHE", "GOMODCACHE");
  // Somebody's own arrangement.
  if (!isAbsolute(compiled) || !isAbsolute(modules)) return;
  const bytes = stillNeeded(cold, await compiledSize(compiled));
  const same = (await diskOf(compiled)) === (await diskOf(modules));
  for (const [path, share] of shares(bytes, compiled, modules, same)) await needDisk(path, share, what, ADVICE);
}
