/** What node:test tells about one finished test or suite; children come before their parent. */
export interface Ended {
  name: string;
  nesting: number;
  suite: boolean;
  state: "passed" | "failed" | "skipped";
  /** node:test's word for why it failed. */
  failureType?: string;
  detail?: string;
}

export interface Failure {
  name: string;
  detail: string;
}

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  failures: Failure[];
}

export const nothing = (): Tally => ({ passed: 0, failed: 0, skipped: 0, failures: [] });

export function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (all, one) => ({
      passed: all.passed + one.passed,
      failed: all.failed + one.failed,
      skipped: all.skipped + one.skipped,
      failures: [...all.failures, ...one.failures],
    }),
    nothing(),
  );
}

export function describeTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** Which events are parents: the one before each of them lies deeper. */
function isParent(event: Ended, before: Ended | undefined): boolean {
  return event.suite || (before !== undefined && before.nesting > event.nesting);
}

/** A parent counts only when it failed by itself, as with a hook; its children speak for the rest. */
const ownFailure = ({ state, failureType }: Ended) => state === "failed" && failureType !== "subtestsFailed";

/** Counts leaf tests. Failures carry the names of their parents, which are told only after them. */
export function tally(events: readonly Ended[]): Tally {
  const counted = events.flatMap((event, i) => {
    const parents = events.slice(i + 1).reduce<Ended[]>((path, later) => {
      const innermost = path[0] ?? event;
      return later.nesting < innermost.nesting ? [later, ...path] : path;
    }, []);
    const counts = !isParent(event, events[i - 1]) || ownFailure(event);
    return counts ? [{ ...event, name: [...parents, event].map(({ name }) => name).join(" › ") }] : [];
  });
  const count = (state: Ended["state"]) => counted.filter((event) => event.state === state).length;
  return {
    passed: count("passed"),
    failed: count("failed"),
    skipped: count("skipped"),
    failures: counted
      .filter(({ state }) => state === "failed")
      .map(({ name, detail = "failed without a word" }) => ({ name, detail })),
  };
}
