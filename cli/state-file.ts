import { createHash } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../toolchain/errors.js";

/** By which Pulumi knows a secret among properties. */
export const SECRET_MARK = "4dabf18193072939515e22adb298388d";

/** Pulumi packs its files when the user asks it to (PULUMI_DIY_BACKEND_GZIP). */
const PACKED = [".gz", ".zst"];

/** Pulumi keeps the one before; what was done on the hosts since then is taken up by the next `up`. */
function damaged(file: string): UserError {
  const before = `${file}.bak`;
  const way = existsSync(before)
    ? `put the one before it, ${before}, in its place, and run kubexm up, which goes on from what it finds on the hosts`
    : "put it back from a backup";
  return new UserError(`the state cannot be read, ${file} is damaged (a power cut, a full disk?): ${way}`);
}

interface Resource {
  type: string;
  /** Made by a provider, and no stack or group of others. */
  custom?: boolean;
  outputs?: Record<string, unknown>;
}

interface Latest {
  resources?: Resource[];
  pending_operations?: unknown[];
}

function parsed(file: string): { checkpoint?: { latest?: Latest } } | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ReturnType<typeof parsed>;
  } catch (error) {
    throw error instanceof SyntaxError ? damaged(file) : error;
  }
}

const latestIn = (file: string): Latest => parsed(file)?.checkpoint?.latest ?? {};

/** A stack may be named with its organisation and project, which a file backend knows by one name only. */
export const shortName = (stack: string) => stack.slice(stack.lastIndexOf("/") + 1);

/** Where a file backend keeps a stack; packed, there is an ending more. */
export const stateFile = (state: string, project: string, stack: string) =>
  join(state, ".pulumi", "stacks", project, `${shortName(stack)}.json`);

const isPacked = (file: string) => PACKED.some((end) => existsSync(file + end));

export const isKnown = (file: string) => existsSync(file) || isPacked(file);

const filesOf = (file: string) => ["", ...PACKED].map((end) => file + end).filter((path) => existsSync(path));

/** Tells one writing of a state from every other: times do not, as clocks are set and copies are made. */
export function markOf(file: string): string {
  const sum = createHash("sha256");
  for (const path of filesOf(file)) sum.update(path.slice(file.length)).update(readFileSync(path));
  return sum.digest("hex");
}

/** To the disk, before what else knows of it goes. */
export function flushState(file: string): void {
  for (const path of filesOf(file)) {
    const state = openSync(path, "r");
    fsyncSync(state);
    closeSync(state);
  }
}

/** Whether it is worth the time to ask Pulumi for half-done operations: of a packed state nobody else can tell. */
export function mayBePending(file: string): boolean {
  if (isPacked(file)) return true;
  if (!existsSync(file)) return false;
  return (latestIn(file).pending_operations ?? []).length > 0;
}

/** What Pulumi knows of, secrets encrypted; undefined where only Pulumi can read it. */
export const resourcesIn = (file: string): readonly Resource[] | undefined =>
  existsSync(file) && !isPacked(file) ? (latestIn(file).resources ?? []) : undefined;

/** Whether anything was made; a preview or a set value leaves a state of nothing. What cannot be told counts. */
export function holdsSomething(file: string): boolean {
  if (!existsSync(file)) return isPacked(file);
  try {
    const { resources = [], pending_operations: pending = [] } = latestIn(file);
    return resources.length + pending.length > 0;
  } catch {
    return true;
  }
}
