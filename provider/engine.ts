import { stat } from "node:fs/promises";
import { posix } from "node:path";
import PQueue from "p-queue";
import { ask } from "./ask";
import { bulks } from "./bulk";
import { change, logged, type Context } from "./change";
import { RemoteError, UserError, textOf } from "./errors";
import {
  addWord,
  bulkNames,
  holdsAtOnce,
  longest,
  lookScript,
  makeScript,
  newMark,
  reader,
  undoScript,
  verifyScript,
  waitForEarlier,
  type Changes,
  type Holder,
  type Work,
} from "./script";
import { lines, type Secret } from "./shell";
import type { Remote } from "./ssh/remote";
import { differences, drift, follows, keyOf, reasonOf, type Drift, type State, type Step } from "./step";

export interface Looked {
  readonly step: Step;
  readonly found: State;
  /** Whose entry the ledger holds for it. */
  readonly held: "none" | "ours" | "others";
}

export interface LookResult {
  readonly looked: readonly Looked[];
  /** Ids of things this owner changed earlier and no longer wants. */
  readonly stale: readonly string[];
  /** The os-release of the host. */
  readonly release: string;
}

export const driftOf = (result: LookResult): Drift[] =>
  result.looked.flatMap(({ step, found }) => drift(step, found) ?? []);

/** How many scripts of this process that take something back have begun or ended on a host. */
const undos = new WeakMap<Remote, number>();
const undosOn = (remote: Remote) => undos.get(remote) ?? 0;

/** Looks meanwhile would see what is gone a moment later, and does not belong to anybody any more. */
async function undoing<T>(remote: Remote, work: () => Promise<T>): Promise<T> {
  undos.set(remote, undosOn(remote) + 1);
  try {
    return await work();
  } finally {
    undos.set(remote, undosOn(remote) + 1);
  }
}

/** Looks at any number of components on one host with one exec, at a moment when nothing is taken back there. */
export async function look(remote: Remote, works: readonly Work[], holder?: Holder): Promise<LookResult[]> {
  for (;;) {
    const before = undosOn(remote);
    const seen = await lookOnce(remote, works, holder).then(
      (results) => () => results,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (before % 2 === 0 && undosOn(remote) === before) return seen();
    await changing(remote, () => Promise.resolve());
  }
}

async function lookOnce(remote: Remote, works: readonly Work[], holder?: Holder): Promise<LookResult[]> {
  const mark = newMark();
  const found = works.map((work) => work.steps.map((): Record<string, string> => ({})));
  const held = works.map((work) => work.steps.map((): Looked["held"] => "none"));
  const owns: string[][] = works.map(() => []);
  const failed: string[] = [];
  const release: string[] = [];
  const answers: Partial<Record<string, string[]>> = {};
  const at: { current?: Record<string, string> | undefined; bulk?: string; complete: boolean } = { complete: false };
  const line = reader(mark, {
    other: (text) => {
      if (at.bulk !== undefined) answers[at.bulk]?.push(text);
      else if (at.current) addWord(at.current, text);
      else release.push(text);
    },
    event: ({ kind, words: [w = "", s, ...rest] }) => {
      const work = Number(w);
      if (kind === "end") at.complete = true;
      else if (kind === "owns") owns[work]?.push([s, ...rest].join(" "));
      else if (kind === "bulk") answers[(at.bulk = w)] = [];
      else if (kind === "error-bulk") failed.push(`the ${w}s`);
      else if (kind === "error") failed.push(works[work]?.steps[Number(s)]?.id ?? "?");
      else if (kind === "look") {
        delete at.bulk;
        at.current = found[work]?.[Number(s)];
        const heldHere = held[work];
        if (heldHere) heldHere[Number(s)] = rest[0] === "ours" ? "ours" : rest[0] === "others" ? "others" : "none";
      }
    },
  });
  const script = lookScript(mark, works);
  const { stderr } = await remote.run(holder ? lines(waitForEarlier(holder), script) : script, {
    title: "look",
    onLine: line,
    timeout: 300,
  });
  const bad = (summary: string) =>
    new RemoteError(summary, {
      host: remote.name,
      reason: "exit",
      stderr,
      ...(failed.length > 0 && { step: failed.join(", ") }),
      advice: "Nothing was changed. Look at the message above; a thing that cannot be read is never taken as absent.",
    });
  if (failed.length > 0) throw bad("could not look");
  if (!at.complete) throw bad("the look ended early");
  const together = new Map(
    bulkNames(works).map(([kind, names]) => {
      const states = bulks[kind].read(answers[kind] ?? [], names);
      return [kind, new Map(names.map((name, i) => [name, states[i] ?? {}]))];
    }),
  );
  const stateOf = (step: Step, own: State = {}): State =>
    step.bulk ? { ...together.get(step.bulk.kind)?.get(step.bulk.name), ...own } : own;
  return works.map((work, w) => {
    const wanted = new Set(work.steps.map((step) => step.id));
    return {
      looked: work.steps.map((step, s) => ({
        step,
        found: stateOf(step, found[w]?.[s]),
        held: held[w]?.[s] ?? "none",
      })),
      stale: (owns[w] ?? []).filter((id) => !wanted.has(id)),
      release: release.join("\n"),
    };
  });
}

/** So many at a time on a host. */
function atMost(concurrency: number): <T>(remote: Remote, task: () => Promise<T>) => Promise<T> {
  const queues = new WeakMap<Remote, PQueue>();
  return (remote, task) => {
    const queue = queues.get(remote) ?? new PQueue({ concurrency });
    queues.set(remote, queue);
    return queue.add(task);
  };
}

/** Looks and uploads do not wait for changes, nor does waiting for what comes of them, which leaves sessions to others. */
const changing = atMost(1);
const waiting = atMost(2);

const staging = "/var/lib/kubexm/staging";

/** Each owner has a folder of its own, so that one that ends does not take away what another is uploading. */
async function sendBodies(remote: Remote, owner: string, steps: readonly Step[], ctx: Context): Promise<void> {
  const all = steps.flatMap(({ id, bodies = [] }) => bodies.map((body) => ({ id, body })));
  const bodies = new Map(all.map((one) => [one.body.sha256, one]));
  if (bodies.size === 0) return;
  await Promise.all(all.flatMap(({ body: { ready } }) => (ready ? [ready(ctx.tell)] : [])));
  await Promise.all(
    [...bodies.values()].map(async ({ id, body: { path, sha256, place } }) => {
      const { size: bytes } = await stat(path).catch((cause: unknown) => {
        const where = `${remote.name} › ${ctx.component} › ${id}`;
        throw new UserError(`${where}: what is to be uploaded cannot be read here: ${textOf(cause)}`, { cause });
      });
      const since = Date.now();
      ctx.tell(`upload ${(bytes / 1e6).toFixed(1)} MB`);
      const upload = {
        to: `${staging}/${owner}/${sha256}`,
        ...(place !== undefined && { waitsAt: posix.join(posix.dirname(place), `.kubexm-${owner}-${keyOf(sha256)}`) }),
        path,
        bytes,
        sha256,
        ...(ctx.signal && { signal: ctx.signal }),
      };
      await remote.upload(upload).catch((error: unknown) => {
        if (!(error instanceof RemoteError)) throw error;
        throw new RemoteError(
          error.summary,
          { ...error.failure, component: ctx.component, step: id },
          { cause: error },
        );
      });
      logged(remote, ctx, { step: "upload", changed: true, ms: Date.now() - since, bytes });
    }),
  );
}

export interface Applied {
  /** Ids of the steps that were made. */
  readonly changed: readonly string[];
  /** What the person should know, e.g. things kept because somebody else uses them. */
  readonly notes: readonly string[];
}

/** What other hosts lend is given back in any case; that it could not be is no reason to fail, but to be known. */
async function withAnswers(
  seen: LookResult,
  make: readonly number[],
  ctx: Context,
  use: (answers: Changes["answers"]) => Promise<Applied | undefined>,
): Promise<Applied | undefined> {
  const asking = make.flatMap((s) => {
    const { step, found } = seen.looked[s] ?? {};
    return step?.ask && found ? [{ s, request: step.ask(found) }] : [];
  });
  const answers = await Promise.all(
    asking.map(async ({ s, request }) => {
      ctx.tell(request.title);
      return { s, ...(await ask(request, ctx.connect)) };
    }),
  );
  const notes: string[] = [];
  const giveBack = () =>
    Promise.all(answers.map(({ done }) => done().catch((error: unknown) => void notes.push(textOf(error)))));
  const used = await use(new Map(answers.map(({ s, text }) => [s, text]))).finally(giveBack);
  return used && { ...used, notes: [...used.notes, ...notes] };
}

/** What differs, and what goes by it. */
function toMake(looked: LookResult["looked"]): number[] {
  const made = new Set<string>();
  return looked.flatMap(({ step, found }, s) => {
    if (differences(step, found).length === 0 && !follows(step, made)) return [];
    made.add(step.id);
    return [s];
  });
}

/** Changes the host with one script, and sees that it holds. Undefined: it is not as it was thought to be; look first. */
async function enact(remote: Remote, work: Work, changes: Changes, ctx: Context): Promise<Applied | undefined> {
  const mark = newMark();
  const { make, claim, stale } = changes;
  const nothing = { notes: [], found: new Map<number, State>() };
  const idle = make.length + claim.length + stale.length === 0;
  const done = idle
    ? nothing
    : await changing(remote, () => {
        const made = () => change(remote, work, makeScript(mark, work, changes, ctx.holder), mark, ctx);
        return stale.length > 0 ? undoing(remote, made) : made();
      });
  if (done === undefined) return undefined;
  const { notes, found } = done;
  const steps = make.flatMap((s) => work.steps[s] ?? []);
  for (const s of make) {
    const step = work.steps[s];
    const left = step && drift(step, found.get(s) ?? {});
    if (left) {
      throw new RemoteError("it was made, but did not take effect", {
        host: remote.name,
        component: ctx.component,
        step: left.step,
        reason: "exit",
        stderr: `wanted ${left.want}\nfound  ${left.found}`,
        advice: "Something on the host changes it back, or refuses it silently. Mend that and run again.",
      });
    }
  }
  const { verify } = work;
  if (verify && (idle || !holdsAtOnce(verify)))
    await waiting(remote, () => change(remote, work, verifyScript(mark, verify), mark, ctx, longest(verify)));
  return { changed: steps.map((step) => step.id), notes };
}

/**
 * Makes what differs and takes back what is no longer wanted. What is to be true afterwards counts also where nothing is to
 * be made: a run before may have ended at just that.
 */
export async function apply(remote: Remote, work: Work, seen: LookResult, ctx: Context): Promise<Applied> {
  const indexes = work.steps.map((_, s) => s);
  const make = toMake(seen.looked);
  const claim = indexes.filter((s) => !make.includes(s) && seen.looked[s]?.held === "others");
  const steps = work.steps.filter((_, s) => make.includes(s));
  for (const { step, found } of seen.looked)
    if (!steps.includes(step))
      logged(remote, ctx, { step: step.id, changed: false, ms: 0, reason: reasonOf(step, found) });
  await sendBodies(remote, work.owner, steps, ctx);
  const done = await withAnswers(seen, make, ctx, (answers) =>
    enact(remote, work, { make, claim, stale: seen.stale.map(keyOf), answers }, ctx),
  );
  if (done && seen.stale.length === 0) return done;
  const [again] = await look(remote, [work]);
  if (!again) return { changed: [], notes: [] };
  if (!done) return apply(remote, work, again, ctx);
  // What was taken back may have held others as they are wanted: a firewall that is on again has rules to be written.
  if (driftOf(again).length === 0) return done;
  const more = await apply(remote, work, { ...again, stale: [] }, ctx);
  return { changed: [...done.changed, ...more.changed], notes: [...done.notes, ...more.notes] };
}

/** What is known to differ, without a look at it. */
export interface KnownChanges {
  readonly work: Work;
  /** For which machine, and for what was last made on it. */
  readonly known: NonNullable<Changes["known"]>;
  /** Indexes of steps that are wanted otherwise than before. */
  readonly make: readonly number[];
}

/** The same with one exec; undefined: one has to look first. */
export function applyKnown(
  remote: Remote,
  { work, known, make }: KnownChanges,
  ctx: Context,
): Promise<Applied | undefined> {
  const changes = { make, claim: [], stale: [], answers: new Map<number, Secret>(), known };
  return enact(remote, work, changes, ctx);
}

/** Gives back everything an owner holds on the host; with `keep` only the records go. Nothing to do is fine. */
export async function revert(remote: Remote, owner: string, keep: boolean, ctx: Context): Promise<readonly string[]> {
  const mark = newMark();
  const script = undoScript(mark, owner, ctx.holder, keep);
  const done = await changing(remote, () =>
    undoing(remote, () => change(remote, { owner, steps: [] }, script, mark, ctx)),
  );
  return done?.notes ?? [];
}
