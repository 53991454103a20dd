import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import { UserError, codeOf } from "./errors.js";

export interface RunOptions {
  cwd?: string;
  /** Laid over this process's environment; `undefined` takes a variable away. */
  env?: Record<string, string | undefined>;
  input?: string | Buffer;
  /** Every line of stdout and stderr while the command runs. */
  onLine?: (line: string) => void;
  timeoutMs?: number;
  /** Exit codes that are no error; 0 when not given. */
  okCodes?: readonly number[];
  signal?: AbortSignal;
}

export interface RunResult {
  code: number;
  stdout: string;
  stderr: string;
}

const STDERR_LINES = 20;
const KILL_AFTER_MS = 5000;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const EXIT_CODE = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Children have their own process group, so that their own children go with them; a terminal's ^C reaches only us. */
const live = new Set<ChildProcess>();

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
}

function killAll(signal: NodeJS.Signals): void {
  for (const child of live) killGroup(child, signal);
}

function onExit(): void {
  killAll("SIGKILL");
}

function onSignal(signal: (typeof SIGNALS)[number]): void {
  killAll(signal);
  // Another listener means that the program decides for itself when to end.
  if (process.listenerCount(signal) === 1) process.exit(EXIT_CODE[signal]);
}

function watch(child: ChildProcess): void {
  if (live.size === 0) {
    process.on("exit", onExit);
    for (const signal of SIGNALS) process.on(signal, onSignal);
  }
  live.add(child);
}

function unwatch(child: ChildProcess): void {
  if (!live.delete(child) || live.size > 0) return;
  process.off("exit", onExit);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function collect(stream: NodeJS.ReadableStream | null, onLine: ((line: string) => void) | undefined): () => string {
  const decoder = new StringDecoder("utf8");
  const parts: string[] = [];
  let rest = "";
  stream?.on("data", (chunk: Buffer) => {
    const text = decoder.write(chunk);
    parts.push(text);
    if (!onLine) return;
    const lines = (rest + text).split(/\r?\n|\r/);
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  });
  stream?.on("end", () => {
    if (onLine && rest !== "") onLine(rest);
  });
  return () => parts.join("") + decoder.end();
}

function failure(cmd: string, args: readonly string[], what: string, output: string): UserError {
  const tail = output.trimEnd().split("\n").slice(-STDERR_LINES).join("\n");
  return new UserError([`${[cmd, ...args].join(" ")}: ${what}`, tail].filter((line) => line !== "").join("\n"));
}

/** Runs one command to its end. A bad exit, a time-out or an abort is a UserError with the last lines of its output. */
export async function run(cmd: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { cwd, env, input, onLine, timeoutMs, okCodes = [0], signal } = options;
  signal?.throwIfAborted();
  const child = spawn(cmd, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  watch(child);
  const stdout = collect(child.stdout, onLine);
  const stderr = collect(child.stderr, onLine);
  let stopped: string | undefined;
  let killer: NodeJS.Timeout | undefined;
  const stop = (why: string) => {
    stopped ??= why;
    killGroup(child, "SIGTERM");
    killer ??= setTimeout(() => killGroup(child, "SIGKILL"), KILL_AFTER_MS);
  };
  const onAbort = () => stop("stopped");
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => stop(`no end after ${timeoutMs / 1000} s`), timeoutMs);
  // A command that ends without reading its input is judged by its exit code, not by our broken pipe.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  try {
    const [code, killedBy] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (...end) => resolve(end));
    });
    const said = () => stderr() || stdout();
    if (stopped !== undefined) throw failure(cmd, args, stopped, said());
    if (code === null) throw failure(cmd, args, `ended by ${killedBy ?? "a signal"}`, said());
    if (!okCodes.includes(code)) throw failure(cmd, args, `exit code ${code}`, said());
    return { code, stdout: stdout(), stderr: stderr() };
  } catch (error) {
    // EACCES: it may be that this user may not look into some folder of PATH.
    const missing = codeOf(error) === "ENOENT" || (codeOf(error) === "EACCES" && !cmd.includes("/"));
    if (!missing) throw error;
    throw new UserError(`${cmd}: command not found${cwd === undefined ? "" : ` (or no folder ${cwd})`}`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    clearTimeout(killer);
    signal?.removeEventListener("abort", onAbort);
    unwatch(child);
  }
}
