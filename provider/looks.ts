import { look, type LookResult } from "./engine";
import type { Holder, Work } from "./script";
import type { Remote } from "./ssh/remote";

interface Waiting {
  readonly work: Work;
  readonly holder: Holder;
  readonly resolve: (result: LookResult) => void;
  readonly reject: (error: unknown) => void;
}

const waiting = new WeakMap<Remote, Waiting[]>();

/** Calls of one host that come together share one exec; a refresh looks at a whole host in one go. */
const gatherMs = 5;

export function lookTogether(remote: Remote, work: Work, holder: Holder): Promise<LookResult> {
  return new Promise((resolve, reject) => {
    const queue = waiting.get(remote);
    if (queue) {
      queue.push({ work, holder, resolve, reject });
      return;
    }
    const first = [{ work, holder, resolve, reject }];
    waiting.set(remote, first);
    setTimeout(() => void lookAll(remote, first), gatherMs);
  });
}

async function lookAll(remote: Remote, queue: readonly Waiting[]): Promise<void> {
  waiting.delete(remote);
  try {
    const results = await look(
      remote,
      queue.map(({ work }) => work),
      // All of them belong to one run.
      queue[0]?.holder,
    );
    results.forEach((result, i) => queue[i]?.resolve(result));
  } catch (error) {
    if (queue.length === 1) return queue[0]?.reject(error);
    // One component that cannot be looked at must not take the others' answers away.
    for (const { work, holder, resolve, reject } of queue)
      await look(remote, [work], holder).then(([result]) => result && resolve(result), reject);
  }
}
