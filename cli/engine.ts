import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { PulumiCommand } from "@pulumi/pulumi/automation";
import { signalAll } from "./stale.js";

const HALF_WRITTEN =
  "a run that was killed left the state half written; kubexm up puts that right, and goes on from there";
const DAMAGED = "the state is damaged and cannot be read; where it is a folder here, kubexm up tells what to do";
const OTHER_PASSPHRASE =
  "the state is encrypted with another passphrase: put the file `passphrase` beside it back, or correct PULUMI_CONFIG_PASSPHRASE";

/** Pulumi's own words, or ours where they do not tell what to do. */
function words(code: number | undefined, said: string): string {
  if (code === undefined) return "Pulumi was killed; the next run goes on from here";
  if (said.includes("failed to load checkpoint: EOF")) return HALF_WRITTEN;
  if (said.includes("failed to load checkpoint: place ")) return `${DAMAGED} (${said})`;
  return said.includes("incorrect passphrase") ? OTHER_PASSPHRASE : said.replaceAll(/^error: /gm, "");
}

/** Pulumi said no, and what it said. */
export class PulumiError extends Error {
  override readonly name = "PulumiError";
  constructor(
    readonly args: readonly string[],
    readonly code: number | undefined,
    readonly stdout: string,
    readonly stderr: string,
  ) {
    super(words(code, stderr.trim() || stdout.trim() || `pulumi ${args.join(" ")} ended with exit code ${code}`));
  }
}

type Env = Record<string, string | undefined>;
type Say = ((text: string) => void) | undefined;

interface Talk {
  onOutput?: Say;
  onError?: Say;
  input?: string;
}

interface CommandResult {
  stdout: string;
  stderr: string;
  code: number;
}

export interface Engine {
  command: PulumiCommand;
  run(args: readonly string[], cwd: string, env: Env): Promise<CommandResult>;
  /** The same, with something to read. */
  feed(args: readonly string[], cwd: string, env: Env, input: string): Promise<CommandResult>;
  /** First call: finish the steps at work and stop. Second: stop now. Third: die. */
  interrupt(): void;
}

/** Asked by the Automation API after every run; we take both from the events, at no price of two more processes. */
const ANSWERS: Readonly<Record<string, string>> = { "stack output": "{}", "stack history": "[]" };

/**
 * The Automation API's own command sends one SIGINT only and leaves Pulumi in the terminal's process group, where ^C reaches
 * it a second time and turns a graceful stop into a hard one. This one puts it into a group of its own and passes every
 * interrupt on by itself. `stackKnown` spares the look whether the stack is there.
 */
export function engine(bin: string, version: string, stackKnown: () => boolean): Engine {
  let child: ChildProcess | undefined;
  let interrupts = 0;

  const send = () => {
    if (child?.pid === undefined || interrupts === 0) return;
    // One that has ended this moment, and is not yet heard of, has nothing to be told.
    signalAll([interrupts > 2 ? -child.pid : child.pid], interrupts > 2 ? "SIGKILL" : "SIGINT");
  };

  async function start(args: readonly string[], cwd: string, env: Env, { onOutput, onError, input }: Talk = {}) {
    if (interrupts > 0) throw new PulumiError(args, undefined, "", "interrupted");
    const mine = spawn(join(bin, "pulumi"), [...args, "--non-interactive"], {
      cwd,
      env: { ...process.env, ...env, PULUMI_AUTOMATION_API: "true" },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    // One that ends without having read it tells why by its exit code.
    mine.stdin.on("error", () => undefined).end(input);
    child = mine;
    const collect = (stream: NodeJS.ReadableStream, say: Say) => {
      const parts: string[] = [];
      stream.setEncoding("utf8").on("data", (text: string) => {
        parts.push(text);
        say?.(text);
      });
      return () => parts.join("");
    };
    const stdout = collect(mine.stdout, onOutput);
    const stderr = collect(mine.stderr, onError);
    const code = await new Promise<number | undefined>((resolve, reject) => {
      mine.once("error", reject);
      // Not "close": a provider that outlives a killed Pulumi holds the pipes open.
      mine.once("exit", (status) => setImmediate(() => resolve(status ?? undefined)));
    });
    child = undefined;
    if (code !== 0) throw new PulumiError(args, code, stdout(), stderr());
    return { stdout: stdout(), stderr: stderr(), code };
  }

  async function run(args: readonly string[], cwd: string, env: Env, onOutput?: Say, onError?: Say) {
    const about = args.slice(0, 2).join(" ");
    const answer = ANSWERS[about];
    if (answer !== undefined) return { stdout: answer, stderr: "", code: 0 };
    if (about !== "stack select") return start(args, cwd, env, { onOutput, onError });
    return stackKnown() ? { stdout: "", stderr: "", code: 0 } : start([...args, "--create"], cwd, env);
  }

  // The API reads the version as text only.
  const told = { toString: () => version } as PulumiCommand["version"];
  const command: PulumiCommand & { run: typeof run } = Object.assign(
    { command: join(bin, "pulumi"), version: told } as PulumiCommand,
    { run },
  );
  return {
    command,
    run,
    feed: (args, cwd, env, input) => start(args, cwd, env, { input }),
    interrupt() {
      interrupts++;
      send();
    },
  };
}
