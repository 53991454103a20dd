import { createHash } from "node:crypto";
import type { Ask } from "./ask";
import type { Command } from "./shell";

/** Kinds of things that are looked at together, as programs cost more to start than to run. */
export type BulkKind = "path" | "unit" | "package" | "sysctl" | "parameter";

/** What was seen on, or is wanted of, one thing: a few short words by name. */
export type State = Readonly<Record<string, string>>;

/** A file of this machine that travels apart from the script: streamed, checked by sha256 on the host, then used by `make`. */
export interface LocalFile {
  readonly path: string;
  readonly sha256: string;
  /** Brings it there; called only when a host needs it. */
  readonly ready?: (tell: (text: string) => void) => Promise<void>;
}

/** One that is to end up somewhere on the host, to where it is moved. */
export interface Body extends LocalFile {
  readonly place?: string;
}

/** What a preview can show of a step without touching the host. */
export interface Shown {
  readonly text: string;
  readonly secret?: boolean;
}

/**
 * One kind of change to one thing on a host. The pieces are POSIX sh over the functions of provider/lib.ts:
 * `look` prints `kv KEY VALUE` lines and changes nothing; `make` reaches `want`; `undo` goes back to the prior state.
 * `save`, `make` and `undo` run with `$entry`, the step's folder in the ledger, as their working directory.
 */
export interface Step {
  /** Names the thing, e.g. `file /etc/chrony.conf`. Steps of any component with one id share one ledger entry. */
  readonly id: string;
  readonly want: State;
  readonly look: Command;
  /** Says the same as `look`, but can be asked together with others of its kind. */
  readonly bulk?: { readonly kind: BulkKind; readonly name: string };
  /** Units whose state its look goes by: they are asked for together with those that are bulk. */
  readonly units?: readonly string[];
  readonly save?: Command;
  /** Exits 0 where it came along with what somebody else wanted: there is no record of it yet, and it is to get one. */
  readonly brought?: Command;
  /** What was there before the first change, where that is not what a look finds. */
  readonly prior?: Command;
  readonly make: Command;
  readonly undo: Command;
  /** If one of these differs from what `make` left, somebody else changed it since: undo keeps theirs and says so. */
  readonly keepIfChanged?: readonly string[];
  /** What else is done when theirs is kept, e.g. to leave the original beside it; ends with `;`. */
  readonly onKept?: Command;
  readonly bodies?: readonly Body[];
  /** What another host is asked for just before `make`, given what the look found; `make` has the answer in `$answer`. */
  readonly ask?: (found: State) => Ask;
  /** A name: components that say they go by it are made again in the same run, as what they stand on is a new one. */
  readonly renews?: string;
  /** Steps whose things it works with as they were when it began: where one is made, so is this, whatever a look says. */
  readonly follows?: readonly string[];
  readonly shown?: Shown;
  /** Prints what is there in place of what is `shown`; nothing where not everybody on the host may read that. */
  readonly content?: Command;
  /** Neighbours with one group are recorded together before the first of them is made; of files and the like it is `quick`. */
  readonly group?: string;
  /** Found values are not shown in drift. */
  readonly secret?: boolean;
  /** Seconds for make or undo; default 300. */
  readonly timeout?: number;
}

/** Files, links, folders and kernel parameters do not depend on each other, and are made in a moment. */
export const quick = "quick";

/** The name of a step's folder in the ledger. */
export const keyOf = (id: string): string => createHash("sha256").update(id).digest("hex").slice(0, 16);

export interface Drift {
  readonly step: string;
  readonly want: string;
  readonly found: string;
}

/** The wanted keys whose value was not found. */
export function differences(step: Step, found: State): readonly string[] {
  return Object.keys(step.want).filter((key) => found[key] !== step.want[key]);
}

export const isSum = (value: string): boolean => /^[0-9a-f]{64}$/.test(value);
const short = (value: string) => (isSum(value) ? value.slice(0, 12) : value);
const show = (state: State, keys: readonly string[]) =>
  keys.map((key) => `${key}=${short(state[key] ?? "-")}`).join(" ");

export const follows = ({ follows: others = [] }: Step, made: ReadonlySet<string>): boolean =>
  others.some((id) => made.has(id));

/** Why a step has nothing to do; some looks know more than that it is as wanted. */
export function reasonOf({ want, secret }: Step, found: State): string {
  const keys = [...new Set([...Object.keys(want), ...("how" in found ? ["how"] : [])])];
  return `as wanted: ${secret ? keys.join(" ") : show(found, keys)}`;
}

export function drift(step: Step, found: State): Drift | undefined {
  const keys = differences(step, found);
  if (keys.length === 0) return undefined;
  if (step.secret) return { step: step.id, want: keys.join(" "), found: `${keys.join(" ")} differ` };
  // An absent thing says so once, instead of listing every property it does not have.
  const shown = found["type"] === "absent" && step.want["type"] !== undefined ? ["type"] : keys;
  return { step: step.id, want: show(step.want, shown), found: show(found, shown) };
}
