import type { Connect } from "./ask";
import { RemoteError, STDERR_LINES } from "./errors";
import type { LogEntry, RunLog } from "./log";
import { addWord, lookAgain, reader, type Holder, type Work } from "./script";
import type { Command } from "./shell";
import type { Remote } from "./ssh/remote";

/** Where a run tells what it does. */
export interface Context {
  readonly component: string;
  readonly holder: Holder;
  /** The way to other hosts, for steps that ask them. */
  readonly connect: Connect;
  readonly log: RunLog;
  /** A line for the person who waits. */
  readonly tell: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** A line of the run log about one host and component. */
export const logged = (remote: Remote, { log, component }: Context, entry: Omit<LogEntry, "host" | "component">) =>
  log({ host: remote.name, component, ...entry });

/** Where a changing script stands. */
interface At {
  title: string;
  since: number;
  /** Of steps that are made and not looked at yet: how long each took. */
  took: Map<string, number>;
  tail: string[];
  current?: Record<string, string> | undefined;
  /** What is under way when it has no look of its own to end it: that something is taken back, or waited for. */
  open?: { readonly changes: boolean } | undefined;
  failure?: string;
  complete: boolean;
}

function described(remote: Remote, ctx: Context, { title, failure }: At, stderr: string, locked: boolean) {
  const advice = locked
    ? "Wait for the other run to end, or stop it; then run again."
    : failure === "124"
      ? "It took longer than its time limit. See what it waits for on the host, then run again: it goes on where it stopped."
      : "Mend the cause and run again: it goes on where it stopped; destroy takes back what was done.";
  const summary = failure === "record" ? "what was there before could not be kept" : `${title} failed`;
  return new RemoteError(locked ? "the host is locked" : summary, {
    host: remote.name,
    component: ctx.component,
    step: title,
    reason: "exit",
    stderr,
    ...(failure !== undefined && /^\d+$/.test(failure) && { code: Number(failure) }),
    advice,
  });
}

/** Runs a script that changes the host and follows it line by line. Undefined: it is not as it was thought to be. */
export async function change(
  remote: Remote,
  work: Work,
  script: Command,
  mark: string,
  ctx: Context,
  /** Seconds; what a script changes has limits of its own. */
  timeout = 3600,
) {
  const notes: string[] = [];
  const found = new Map<number, Record<string, string>>();
  const at: At = { title: "prepare", since: Date.now(), took: new Map(), tail: [], complete: false };
  const tell = (entry: { changed: boolean; failed?: string }) =>
    logged(remote, ctx, { step: at.title, ms: Date.now() - at.since, ...entry });
  const settle = () => {
    if (!at.took.has(at.title)) at.took.set(at.title, Date.now() - at.since);
    if (at.open) tell({ changed: at.open.changes });
    at.open = undefined;
  };
  const start = (title: string, open?: At["open"]) => {
    settle();
    Object.assign(at, { title, since: Date.now(), tail: [], current: undefined, open });
    ctx.tell(title);
  };
  const line = reader(mark, {
    other: (text) => {
      if (at.current) addWord(at.current, text);
      else at.tail = [...at.tail, text].slice(-STDERR_LINES);
    },
    event: ({ kind, words }) => {
      const step = work.steps[Number(words[0])];
      if (kind === "begin" && step) start(step.id);
      else if (kind === "begin") start(work.verify?.title ?? "verify", { changes: false });
      else if (kind === "undo") start(`undo ${words.join(" ")}`, { changes: true });
      else if (kind === "note") {
        const told = script.redact(words.join(" "));
        notes.push(told);
        ctx.tell(told);
      } else if (kind === "fail") {
        // What could not be recorded has not begun, and what is looked at again is not the last that did.
        if (["record", "look"].includes(words[1] ?? "") && step) at.title = step.id;
        at.failure = words[1] ?? "?";
      } else if (kind === "seen") at.current = undefined;
      else if (kind === "end") {
        settle();
        at.complete = true;
      } else if (kind === "look") {
        const made = work.steps[Number(words[1])]?.id ?? at.title;
        settle();
        at.current = {};
        found.set(Number(words[1]), at.current);
        logged(remote, ctx, { step: made, changed: true, ms: at.took.get(made) ?? 0 });
      }
    },
  });
  const signal = ctx.signal && { signal: ctx.signal };
  const result = await remote
    .run(script, { title: ctx.component, onLine: line, timeout, ok: [0, 1, 75, lookAgain], ...signal })
    .catch((error: unknown) => {
      if (!(error instanceof RemoteError)) throw error;
      const stderr = script.redact(error.failure.stderr ?? "");
      tell({ changed: false, failed: [error.summary, stderr].filter(Boolean).join("\n") });
      const where = { component: ctx.component, step: at.title };
      throw new RemoteError(error.summary, { ...error.failure, stderr, ...where }, { cause: error });
    });
  if (result.code === lookAgain) return undefined;
  if (at.failure === undefined && at.complete && result.code === 0) return { notes, found };
  const stderr = script.redact([...at.tail, result.stderr].filter((text) => text.trim() !== "").join("\n"));
  tell({ changed: false, failed: stderr });
  throw described(remote, ctx, at, stderr, result.code === 75);
}
