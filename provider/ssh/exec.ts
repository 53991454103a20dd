import { randomBytes } from "node:crypto";
import type { ClientChannel } from "ssh2";
import type { RemoteError } from "../errors";
import { sh, type Command } from "../shell";
import { endpoint, failure, scrub } from "./failure";
import { withSession, type Lane, type Link } from "./link";
import { capture, ending, lineSplitter, markers, STDERR_LIMIT, STDOUT_LIMIT, type Ending } from "./output";
import type { RunOptions, RunResult } from "./remote";
import { ASKS_AGAIN, commandText, noPassword, noSudo, sudoFailure, type Elevation, type Program } from "./sudo";
import type { Target } from "./target";

const DEFAULT_TIMEOUT_S = 600;
/** How much longer than the host's own timeout we wait: its TERM, ten seconds, its KILL, and the way back. */
const DEADLINE_MARGIN_S = 15;
const TIMED_OUT = [124, 137];
const KILL_MS = 5_000;

/** The same surroundings for every script, whatever the login shell made; and the sign that it runs. */
export const SHELL_SETUP = sh`LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export LC_ALL PATH; echo kubexm:begin`;

/** Sends what the program reads. Rejections are not waited for: the exit code tells more. */
export type Feed = (channel: ClientChannel) => void;

export interface Job {
  program: Program;
  lane: Lane;
  /** What goes to stdin once the program runs. */
  feed: Feed;
  root: boolean;
  title: string;
  timeoutS: number;
  signal?: AbortSignal | undefined;
  onLine?: ((line: string) => void) | undefined;
}

/** One user of a link: errors carry its name, and sudo its password. */
export interface Seat {
  link: Link;
  target: Target;
}

/**
 * The shell reads the whole group before it runs any of it, so half a script (a connection that broke) does nothing,
 * and the commands in it cannot eat the rest of the script from stdin.
 */
export function wrap(script: Command): string {
  return [SHELL_SETUP.text, "{", ":", script.text, "} </dev/null", "exit", ""].join("\n");
}

function cancelled(target: Target, title: string): RemoteError {
  return failure(target.label, "cancelled", `cancelled: ${title}`);
}

/** Ends, on the host, the processes that carry the id of a run, whichever user they belong to. */
function killScript(id: string): Command {
  return sh`cd /proc || exit
for p in [0-9]*; do
  case "$(tr '\000' ' ' <$p/cmdline 2>/dev/null)" in *"timeout "*${id}*) kill -TERM $p 2>/dev/null;; esac
done
:`;
}

async function killRemotely(seat: Seat, id: string, root: boolean): Promise<void> {
  const how = await knownElevation(seat, root);
  const command = commandText(how ?? "user", "script", 10, "kubexm-kill");
  const kill = withSession(seat.link, "urgent", command, (channel) => {
    const { done } = ending(channel, ignore, ignore);
    begin(channel, how ?? "user", seat.target, (to) => to.end(wrap(killScript(id))));
    return done;
  });
  await Promise.race([kill.catch(ignore), new Promise((resolve) => setTimeout(resolve, KILL_MS).unref())]);
}

const ignore = () => undefined;

function passwordLine(target: Target): string {
  return `${target.sudoPassword ?? ""}\n`;
}

function needsSudo(target: Target, root: boolean): boolean {
  return root && target.user !== "root";
}

function elevationOf(seat: Seat): Promise<Elevation> | undefined {
  return seat.link.elevations.get(seat.target.sudoPassword ?? "");
}

async function knownElevation(seat: Seat, root: boolean): Promise<Elevation | undefined> {
  return needsSudo(seat.target, root) ? elevationOf(seat)?.catch(ignore) : undefined;
}

interface Prober {
  resolve: (elevation: Elevation) => void;
  reject: (error: unknown) => void;
}

/** What to do about becoming root: known, or to be found out by this very command while all others wait for it. */
async function elevate(
  seat: Seat,
  root: boolean,
): Promise<{ how: Elevation | "user" } | { how: "probe"; prober: Prober }> {
  if (!needsSudo(seat.target, root)) return { how: "user" };
  for (;;) {
    const known = elevationOf(seat);
    if (!known) return { how: "probe", prober: startProbe(seat) };
    const how = await known.catch((error: unknown) => {
      if (isSudoRefusal(error)) throw error;
      return undefined;
    });
    if (how) return { how };
  }
}

function isSudoRefusal(error: unknown): boolean {
  return error instanceof Error && "failure" in error && (error as RemoteError).failure.reason === "sudo";
}

function startProbe(seat: Seat): Prober {
  const key = seat.target.sudoPassword ?? "";
  const { promise, resolve, reject } = deferred<Elevation>();
  seat.link.elevations.set(key, promise);
  promise.catch((error: unknown) => {
    if (!isSudoRefusal(error)) seat.link.elevations.delete(key);
  });
  return { resolve, reject };
}

export function deferred<T>() {
  let resolve: (value: T) => void = ignore;
  let reject: (error: unknown) => void = ignore;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Talks to the probe until it is root; then the program is fed. Returns a check to make when it ended before that. */
function converse(channel: ClientChannel, target: Target, feed: Feed, prober: Prober) {
  let mode: Elevation | "nosudo" | undefined;
  let problem: RemoteError | undefined;
  let elevated = false;
  const refuse = (error: RemoteError) => {
    problem ??= error;
    channel.end();
  };
  return {
    onMarker: (name: string) => {
      if (name === "nosudo") return refuse(noSudo(target));
      if (name === "root" || name === "nopasswd") mode = name;
      if (name === "password") {
        mode = name;
        if (target.sudoPassword === undefined) refuse(noPassword(target));
        else channel.write(passwordLine(target));
      }
      if (name === "elevated" && mode) {
        elevated = true;
        prober.resolve(mode as Elevation);
        feed(channel);
      }
    },
    // Its second question would eat our script as a password, and the third may lock the account.
    onStderr: (text: string) => {
      if (!elevated && ASKS_AGAIN.test(text)) channel.end();
    },
    problem: (stderr: string) => problem ?? (mode && !elevated ? sudoFailure(target, stderr) : undefined),
  };
}

function begin(channel: ClientChannel, how: Elevation | "user", target: Target, feed: Feed): void {
  if (how === "password") channel.write(passwordLine(target));
  feed(channel);
}

/** Runs one program on a session of its own, through to its end, and says how that went. Only a broken way rejects. */
export async function perform(seat: Seat, job: Job): Promise<RunResult> {
  const { target } = seat;
  if (job.signal?.aborted) throw cancelled(target, job.title);
  const way = await elevate(seat, job.root);
  const id = `kubexm-${randomBytes(6).toString("hex")}`;
  const started = Date.now();
  try {
    return await untilAborted(seat, job, (begun) =>
      withSession(seat.link, job.lane, commandText(way.how, job.program, job.timeoutS, id), async (channel) => {
        if (job.signal?.aborted) {
          channel.close();
          throw cancelled(target, job.title);
        }
        begun();
        return attend(seat, job, way, channel, id, started);
      }),
    );
  } catch (error) {
    if (way.how === "probe") way.prober.reject(error);
    throw error;
  }
}

/** A job that still waits for its turn is given up at once; one that runs is ended by {@link attend}. */
function untilAborted<T>(seat: Seat, job: Job, work: (begun: () => void) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let waiting = true;
    const onAbort = () => waiting && reject(cancelled(seat.target, job.title));
    job.signal?.addEventListener("abort", onAbort, { once: true });
    work(() => (waiting = false))
      .then(resolve, reject)
      .finally(() => job.signal?.removeEventListener("abort", onAbort));
  });
}

type Way = Awaited<ReturnType<typeof elevate>>;

async function attend(seat: Seat, job: Job, way: Way, channel: ClientChannel, id: string, started: number) {
  const { target } = seat;
  const stdout = capture(STDOUT_LIMIT);
  const stderr = capture(STDERR_LIMIT);
  const lines = job.onLine && lineSplitter(job.onLine);
  const talk = way.how === "probe" ? converse(channel, target, job.feed, way.prober) : undefined;
  const body = (chunk: Buffer) => {
    stdout.add(chunk);
    lines?.add(chunk);
  };
  const marked = markers((name) => talk?.onMarker(name), body);
  const { done, abandon } = ending(channel, marked.add, (chunk) => {
    stderr.add(chunk);
    talk?.onStderr(chunk.toString("latin1"));
  });
  const stop = stopper(seat, job, id, abandon);
  if (way.how !== "probe") begin(channel, way.how, target, job.feed);
  const end = await done;
  const ms = Date.now() - started;
  stop.done();
  lines?.end();
  const errors = scrub(stderr.text(), target);
  const problem = stop.problem() ?? talk?.problem(errors) ?? brokenWay(target, job, end, marked, errors, ms);
  if (problem) throw problem;
  return { code: end.code ?? -1, stdout: stdout.text(), stderr: errors, ms };
}

/** Ends a run from here: when it is cancelled, or when even the host's own timeout did not end it. */
function stopper(seat: Seat, job: Job, id: string, abandon: () => void) {
  let problem: RemoteError | undefined;
  const onAbort = () => {
    problem ??= cancelled(seat.target, job.title);
    void killRemotely(seat, id, job.root).then(abandon);
  };
  const onDeadline = () => {
    problem ??= timedOut(seat.target, job);
    abandon();
  };
  const timer = setTimeout(onDeadline, (job.timeoutS + DEADLINE_MARGIN_S) * 1000);
  job.signal?.addEventListener("abort", onAbort, { once: true });
  if (job.signal?.aborted) onAbort();
  return {
    problem: () => problem,
    done: () => {
      clearTimeout(timer);
      job.signal?.removeEventListener("abort", onAbort);
    },
  };
}

function timedOut(target: Target, job: Job): RemoteError {
  return failure(target.label, "timeout", `not done within ${job.timeoutS} s, and ended: ${job.title}`, {
    command: job.title,
    advice: "look on the host at what it waits for, or give it more time",
  });
}

type Marked = ReturnType<typeof markers>;

/** The program never began, or nobody knows how it ended: this is never a result. */
function brokenWay(
  target: Target,
  job: Job,
  end: Ending,
  marked: Marked,
  stderr: string,
  ms: number,
): RemoteError | undefined {
  const command = job.title;
  if (end.code === undefined)
    return failure(target.label, "disconnected", `the connection to ${endpoint(target)} broke while it ran`, {
      command,
      stderr,
      advice:
        "it may still run there. Look at the network and the host, then run the same again: nothing is done twice",
    });
  if (end.code === null && ms >= job.timeoutS * 1000) return timedOut(target, job);
  if (end.code === null)
    return failure(target.label, "signal", "it was killed", { command, signal: end.signal ?? "unknown", stderr });
  if (marked.begun()) return undefined;
  if (/^sudo(-rs)?: /m.test(stderr)) return sudoFailure(target, stderr);
  return failure(target.label, "channel", `the login shell of ${target.user} did not run /bin/sh`, {
    command,
    code: end.code,
    stderr: [marked.noise(), stderr].filter(Boolean).join("\n"),
    advice: "the host needs coreutils' timeout and a /bin/sh, and the user a usable login shell without ForceCommand",
  });
}

/** The outcome, or the error it amounts to. */
export function judged(target: Target, job: Job, result: RunResult, ok: readonly number[] = [0]): RunResult {
  if (ok.includes(result.code)) return result;
  if (TIMED_OUT.includes(result.code) && result.ms >= job.timeoutS * 1000) throw timedOut(target, job);
  throw failure(target.label, "exit", `failed: ${job.title}`, {
    command: job.title,
    code: result.code,
    stderr: result.stderr,
  });
}

function firstLine(script: Command): string {
  const line = String(script)
    .split("\n")
    .map((text) => text.trim())
    .find((text) => text !== "" && !text.startsWith("#"));
  return line === undefined ? "(empty script)" : line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

export async function run(seat: Seat, script: Command, options: RunOptions = {}): Promise<RunResult> {
  const job: Job = {
    program: "script",
    lane: "commands",
    feed: (channel) => channel.end(wrap(script)),
    root: options.root ?? true,
    title: options.title ?? firstLine(script),
    timeoutS: Math.ceil(options.timeout ?? DEFAULT_TIMEOUT_S),
    signal: options.signal,
    onLine: options.onLine,
  };
  return judged(seat.target, job, await perform(seat, job), options.ok);
}

/** Finds out how to become root, where that is not known yet, with a command that does nothing else. */
export async function knowElevation(seat: Seat): Promise<void> {
  if (needsSudo(seat.target, true) && !elevationOf(seat)) await run(seat, sh`:`, { title: "become root" });
}
