import { run } from "node:test";
import { inspect } from "node:util";
import { type Ended, type Tally, tally } from "./tally.js";

export interface FileRun extends Tally {
  seconds: number;
  /** What the file's tests printed. */
  output: string;
}

/** Node 20 tells of every test that a name pattern leaves out. */
const LEFT_OUT = "test name does not match pattern";

/** Lines of a stack that lie within Node. */
const NODES_OWN = /^ +at .*\(?node:(internal|async_hooks)/;

/** The figures node:test adds at the end of a file; ours come from its events. */
const FIGURES = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

interface Event {
  name: string;
  nesting: number;
  skip?: string | boolean;
  todo?: string | boolean;
  details: { type?: string | undefined; error?: Error };
}

function failureOf(error: Error): Pick<Ended, "failureType" | "detail"> {
  const failureType = "failureType" in error ? String(error.failureType) : "";
  const lines = inspect(error.cause ?? error, { depth: 6 }).split("\n");
  return { failureType, detail: lines.filter((line) => !NODES_OWN.test(line)).join("\n") };
}

function ended(event: Event, passed: boolean): Ended {
  const { name, nesting, skip, todo, details } = event;
  const skipped = (skip !== undefined && skip !== false) || (todo !== undefined && todo !== false);
  return {
    name,
    nesting,
    suite: details.type === "suite",
    state: skipped ? "skipped" : passed ? "passed" : "failed",
    ...(details.error && failureOf(details.error)),
  };
}

const asPattern = (text: string) => new RegExp(text.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&"), "i");

/** Runs one compiled test file in its own process. Only its own failures count, not that a file holds no test. */
export async function runFile(
  file: string,
  options: { timeoutMs: number; signal: AbortSignal; testName: string | undefined },
): Promise<FileRun> {
  const start = Date.now();
  const events: Ended[] = [];
  const output: string[] = [];
  const { timeoutMs: timeout, signal, testName } = options;
  const add = (event: Event, passed: boolean) => {
    const isFile = event.name === file;
    if (event.skip === LEFT_OUT || (isFile && passed)) return;
    events.push(ended(isFile ? { ...event, name: "the file as a whole" } : event, passed));
  };
  const stream = run({
    files: [file],
    timeout,
    signal,
    ...(testName !== undefined && { testNamePatterns: [asPattern(testName)] }),
  });
  stream
    .on("test:pass", (event) => add(event, true))
    .on("test:fail", (event) => add(event, false))
    .on("test:stdout", ({ message }) => output.push(message))
    .on("test:stderr", ({ message }) => output.push(message))
    .on("test:diagnostic", ({ message }) => FIGURES.test(message) || output.push(`${message}\n`))
    .resume();
  await new Promise((resolve, reject) => stream.once("end", resolve).once("error", reject));
  return { ...tally(events), seconds: (Date.now() - start) / 1000, output: output.join("") };
}
