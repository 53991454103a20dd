import type { Asked } from "./asked";
import type { Check } from "./names";
import type { Seen } from "./seen";

export type Result = "pass" | "warn" | "fail";

export interface Verdict {
  readonly result: Result;
  readonly found: string;
  /** What a person should do; absent when all is well. */
  readonly fix?: string;
}

export interface Row extends Verdict {
  readonly host: string;
  /** `connect` is the way onto the host itself: without it there is nothing to ignore. */
  readonly check: Check | "connect";
}

export const pass = (found: string): Verdict => ({ result: "pass", found });
export const warn = (found: string, fix: string): Verdict => ({ result: "warn", found, fix });
export const fail = (found: string, fix: string): Verdict => ({ result: "fail", found, fix });

/** A failure that was said to be no reason to stop. */
export const tolerate = (row: Row, ignored: readonly string[]): Row =>
  row.result === "fail" && ignored.includes(row.check)
    ? { ...row, result: "warn", found: `${row.found} (ignored as asked)` }
    : row;

/** Pure: from what was seen and what is asked to what a person reads. Nothing to say: the check does not concern the host. */
export type Judge = (seen: Seen, asked: Asked) => Verdict | undefined;
