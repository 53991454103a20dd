import { isDeepStrictEqual } from "node:util";
import type { HostResult } from "./together";

interface Look {
  readonly result: HostResult;
  readonly again: () => Promise<HostResult>;
}

/**
 * What hosts showed in an earlier run. The state keeps it, and nothing in it says whether all hosts together have passed
 * since: so this process notes each result that it is shown, with the way to look again.
 */
export class Earlier {
  readonly #looks = new Map<string, Look[]>();

  note(result: HostResult, again: () => Promise<HostResult>): void {
    // The last one first: a refresh or a preview may have shown it before, with another way onto the host.
    this.#looks.set(result.host, [{ result, again }, ...(this.#looks.get(result.host) ?? [])]);
  }

  /** The host as it is now. What was not noted was seen in this run, or belongs to a host that this run leaves alone. */
  async renewed(result: HostResult): Promise<HostResult> {
    const look = this.#looks.get(result.host)?.find((one) => isDeepStrictEqual(one.result, result));
    return look === undefined ? result : look.again();
  }
}

/**
 * A host of a cluster that has passed once, seen anew: what it shows beside the others counts. By itself it was judged when
 * it came, and differs since in many ways from one that is to come; but whether it can be looked at does count.
 */
export const beside = (was: HostResult, now: HostResult): HostResult =>
  now.seen ? { ...now, passed: was.passed, rows: was.rows } : now;

/** Of what the state and the last check of all know of a host, the newer. */
export const newest = (result: HostResult, renewed: readonly HostResult[]): HostResult =>
  renewed.find(({ host, at }) => host === result.host && at >= result.at) ?? result;
