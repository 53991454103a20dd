import { existsSync, readFileSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../toolchain/errors.js";
import { pidLives } from "./claim.js";

interface Owner {
  pid: number;
  username: string;
  hostname: string;
  timestamp: string;
}

interface Lock {
  path: string;
  /** None where it is only half there. */
  owner?: Owner;
}

const STRAY_GRACE_MS = 60_000;

function readOwner(path: string): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(path, "utf8")) as Owner | null;
    return typeof owner?.pid === "number" ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** All that Pulumi takes for a lock: whole ones, and what it was about to rename to one when it was killed. */
function locksOf(state: string, stack: string): Lock[] {
  const dir = join(state, ".pulumi", "locks", ...stack.split("/"));
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".attrs"))
    .map(({ name }) => {
      const path = join(dir, name);
      const owner = readOwner(path);
      return { path, ...(owner && { owner }) };
    });
}

/** The program a process runs; "" where that cannot be seen. */
function programOf(pid: number): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(" (deleted)", "");
  } catch {
    return "";
  }
}

/** Whether the process that wrote the lock is still there, and not another one that has its number now. */
function held(owner: Owner): boolean {
  if (owner.hostname !== hostname()) return true;
  const program = programOf(owner.pid);
  return pidLives(owner.pid) && (program === "" || program.startsWith("pulumi"));
}

/**
 * A killed Pulumi leaves its lock in a file backend. Removes those whose process is gone from this machine; says what it
 * removed. A lock of a living process, or of another machine, is an error that names the owner. One that cannot be read stops
 * every Pulumi; who writes one at this moment does so under another name, and only fails to rename it.
 */
export function clearDeadLocks(state: string, stack: string): string[] {
  const locks = locksOf(state, stack);
  for (const { path, owner } of locks) {
    if (owner === undefined || !held(owner)) continue;
    const elsewhere = owner.hostname !== hostname();
    throw new UserError(
      `the state is locked by ${owner.username}@${owner.hostname}, process ${owner.pid}, since ${owner.timestamp}; ` +
        (elsewhere
          ? `if that run is dead, remove ${path}`
          : `wait for its end, or stop it with: kill -INT ${owner.pid}`),
    );
  }
  return locks.map(({ path, owner }) => {
    rmSync(path, { force: true });
    rmSync(`${path}.attrs`, { force: true });
    return owner === undefined
      ? "removed a lock that a killed run, or a full disk, left half written"
      : `removed the lock of a run that was killed (process ${owner.pid}, ${owner.timestamp})`;
  });
}

/**
 * Pulumi keeps notes about a file beside it, and writes them in one go with nothing to fall back on: a kill in that moment leaves
 * half of them, and the file itself cannot be read any more. It needs none.
 */
export function dropHalfNotes(state: string): void {
  const dir = join(state, ".pulumi");
  if (!existsSync(dir)) return;
  const notes = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".attrs"));
  for (const path of notes.map((name) => join(dir, name))) if (!isJson(path)) rmSync(path, { force: true });
}

function isJson(path: string): boolean {
  try {
    JSON.parse(readFileSync(path, "utf8"));
    return true;
  } catch {
    return false;
  }
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}

/** Set for everything a changing run starts, so that the next run knows what a killed one left running. */
export const RUN_MARK = "KUBEXM_RUN_IN";

function strays(home: string): number[] {
  if (!existsSync("/proc/self/environ")) return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
    .filter((pid) => environmentOf(pid).split("\0").includes(`${RUN_MARK}=${home}`));
}

/** Signals those of the processes that still are there. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself.
    }
}

/**
 * Pulumi and its provider outlive a killed kubexm. They are asked to stop (Pulumi then ends the step it is at and writes
 * the state), and ended after a minute. Called by the one run that holds the claim, so all that carry the mark are left over.
 */
export async function endStrays(home: string, say: (line: string) => void): Promise<void> {
  const found = strays(home);
  if (found.length === 0) return;
  say(`ending what a killed run left: processes ${found.join(", ")}`);
  const engines = found.filter((pid) => programOf(pid).startsWith("pulumi"));
  signalAll(engines, "SIGINT");
  const until = Date.now() + STRAY_GRACE_MS;
  while (Date.now() < until && engines.some(pidLives)) await sleep(100);
  signalAll(strays(home), "SIGKILL");
}
