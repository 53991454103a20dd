import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { forKind } from "../../provider/dynamic";
import { HalfMade, type Inputs } from "../../provider/lifecycle";
import { closeAll } from "../../provider/ssh";
import "./fault-box";

/** One call of the provider, as the engine would make it. */
export type Call =
  | { verb: "create"; inputs: Inputs }
  | { verb: "update"; olds: Inputs; news: Inputs }
  | { verb: "read" | "delete"; props: Inputs };

export interface Answer {
  outs?: Inputs;
  /** Set when it failed half way and what is to be stored. */
  halfMade?: Inputs;
  error?: string;
}

const provider = () => forKind("FaultBox");

async function call(job: Call): Promise<Inputs> {
  if (job.verb === "create") return (await provider().create(job.inputs)).outs;
  if (job.verb === "update") return (await provider().update("id", job.olds, job.news)).outs;
  if (job.verb === "read") return (await provider().read("id", job.props)).props;
  await provider().delete("id", job.props);
  return {};
}

/** The call made in this process, over the connection that is there or a new one. */
export async function here(job: Call): Promise<Answer> {
  try {
    return { outs: await call(job) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { error: error.message, ...(error instanceof HalfMade && { halfMade: error.properties }) };
  }
}

export interface Elsewhere {
  readonly child: ChildProcess;
  /** Everything it printed. */
  readonly output: () => string;
  /** Undefined when it was killed. */
  readonly answer: Promise<Answer | undefined>;
}

/** The call made in a process of its own; resolves when it has loaded everything and begins. */
export async function elsewhere(job: Call, env: NodeJS.ProcessEnv = {}): Promise<Elsewhere> {
  const child = spawn(process.execPath, [__filename], {
    stdio: ["pipe", "pipe", "inherit", "ipc"],
    env: { ...process.env, ...env },
  });
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  let answered: Answer | undefined;
  child.on("message", (message) => {
    if (message !== "begins") answered = message as Answer;
  });
  const answer = once(child, "exit").then(() => answered);
  child.send(job);
  await Promise.race([once(child, "message"), answer]);
  return { child, output: () => output, answer };
}

if (require.main === module) {
  process.once("message", (job: Call) => {
    process.send?.("begins");
    void here(job)
      .finally(closeAll)
      .then((answer) => process.send?.(answer, () => process.disconnect()));
  });
}
