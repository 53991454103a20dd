import { setTimeout as sleep } from "node:timers/promises";
import { differingLines, hasLines } from "./contents";
import { look, type Looked, type LookResult } from "./engine";
import type { Holder, Work } from "./script";
import type { Remote } from "./ssh/remote";

interface Waiting<Q, A> {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: unknown) => void;
}

/** Questions to one host that come together share one exec, and so do those that come while one is at work. */
const gatherMs = 5;

function inTurns<Q, A>(ask: (remote: Remote, questions: readonly Q[]) => Promise<readonly A[]>) {
  const queues = new WeakMap<Remote, Waiting<Q, A>[]>();

  async function answer(remote: Remote, together: readonly Waiting<Q, A>[]): Promise<void> {
    try {
      const answers = await ask(
        remote,
        together.map(({ question }) => question),
      );
      answers.forEach((one, i) => together[i]?.resolve(one));
    } catch (error) {
      if (together.length === 1) return together[0]?.reject(error);
      // One component that cannot be looked at must not take the others' answers away.
      await Promise.all(together.map((one) => answer(remote, [one])));
    }
  }

  async function work(remote: Remote, queue: Waiting<Q, A>[]): Promise<void> {
    await sleep(gatherMs);
    while (queue.length > 0) await answer(remote, queue.splice(0));
    queues.delete(remote);
  }

  function begin(remote: Remote): Waiting<Q, A>[] {
    const queue: Waiting<Q, A>[] = [];
    queues.set(remote, queue);
    void work(remote, queue);
    return queue;
  }

  return (remote: Remote, question: Q): Promise<A> =>
    new Promise((resolve, reject) => {
      (queues.get(remote) ?? begin(remote)).push({ question, resolve, reject });
    });
}

const looking = inTurns((remote, asked: readonly { work: Work; holder: Holder }[]) =>
  look(
    remote,
    asked.map(({ work }) => work),
    // All of them belong to one run.
    asked[0]?.holder,
  ),
);

/** A refresh looks at a whole host in one go, or in two. */
export const lookTogether = (remote: Remote, work: Work, holder: Holder): Promise<LookResult> =>
  looking(remote, { work, holder });

const comparing = inTurns(differingLines);

/** The lines that differ, by step; a step whose content can no longer be had, or does not differ, has none. */
export async function linesOf(remote: Remote, { looked }: LookResult): Promise<ReadonlyMap<string, readonly string[]>> {
  const lines = async (one: Looked) => [one.step.id, await comparing(remote, one).catch(() => [])] as const;
  const told = await Promise.all(looked.filter(hasLines).map(lines));
  return new Map(told.filter(([, rows]) => rows.length > 0));
}
