import { setTimeout as sleep } from "node:timers/promises";
import { look, type LookResult } from "./engine";
import type { Holder, Work } from "./script";
import type { Remote } from "./ssh/remote";

interface Waiting {
  readonly work: Work;
  readonly holder: Holder;
  readonly resolve: (result: LookResult) => void;
  readonly reject: (error: unknown) => void;
}

const queues = new WeakMap<Remote, Waiting[]>();

/** Calls for one host that come together share one exec, and so do those that come while one is at work. */
const gatherMs = 5;

/** A refresh looks at a whole host in one go, or in two. */
export function lookTogether(remote: Remote, work: Work, holder: Holder): Promise<LookResult> {
  return new Promise((resolve, reject) => {
    const queue = queues.get(remote) ?? beginQueue(remote);
    queue.push({ work, holder, resolve, reject });
  });
}

function beginQueue(remote: Remote): Waiting[] {
  const queue: Waiting[] = [];
  queues.set(remote, queue);
  void lookInTurns(remote, queue);
  return queue;
}

async function lookInTurns(remote: Remote, queue: Waiting[]): Promise<void> {
  await sleep(gatherMs);
  while (queue.length > 0) await lookAll(remote, queue.splice(0));
  queues.delete(remote);
}

async function lookAll(remote: Remote, together: readonly Waiting[]): Promise<void> {
  try {
    const results = await look(
      remote,
      together.map(({ work }) => work),
      // All of them belong to one run.
      together[0]?.holder,
    );
    results.forEach((result, i) => together[i]?.resolve(result));
  } catch (error) {
    if (together.length === 1) return together[0]?.reject(error);
    // One component that cannot be looked at must not take the others' answers away.
    const alone = together.map(({ work, holder, resolve, reject }) =>
      look(remote, [work], holder).then(([result]) => result && resolve(result), reject),
    );
    await Promise.all(alone);
  }
}
