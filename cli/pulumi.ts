import "./light-sdk.js";
import { appendFileSync, existsSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { type EngineEvent, LocalWorkspace, type PulumiFn } from "@pulumi/pulumi/automation";
import { messageOf } from "../toolchain/errors.js";
import { agreed, refuseUnasked } from "./agree.js";
import { claim } from "./claim.js";
import { type Engine, PulumiError, engine } from "./engine.js";
import type { PulumiArguments, PulumiVerb } from "./flags.js";
import { type Backend, type Home, PROJECT, homeOf, prepare, runEnvironment, stackOf, tellOfJournal } from "./home.js";
import { beginJournal, endJournal, lostOf, saltIn, withJournal } from "./journal.js";
import { kubeconfigPath } from "./kubeconfig.js";
import { loginAdvice } from "./login.js";
import { type StackExport, settlePending } from "./pending.js";
import { report } from "./report.js";
import { type Screen, screen } from "./screen.js";
import { withPulumi } from "./stack.js";
import { clearDeadLocks, dropHalfNotes, endStrays } from "./stale.js";
import { isKnown, mayBePending, shortName, stateFile } from "./state-file.js";
import { isPlan, isUnseen, onlyLooked, summary } from "./words.js";

export interface Job {
  /** The cluster's name: the stack's too, unless PULUMI_STACK says otherwise. */
  cluster: string;
  program: PulumiFn;
  /** Why `up` will not have it. A plan without what cannot be made would show a running cluster as going. */
  refused?: Error;
}

const EXIT = { ok: 0, failed: 1, SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

const lockPath = (stack: string) => `organization/${PROJECT.name}/${shortName(stack)}`;

const say = (line: string) => console.error(line);

/** Makes the state fit for a run after one that was killed: what still runs of it, its lock, what it left half done. */
async function mend(home: Home, { env, state, own }: Backend, stack: string, pulumi: Engine): Promise<void> {
  await endStrays(home.dir, say);
  if (state === undefined) return;
  dropHalfNotes(state);
  clearDeadLocks(state, lockPath(stack)).forEach(say);
  const file = stateFile(state, PROJECT.name, stack);
  // One of a run in kubexm's own state waits for the next run there.
  const lost = own ? lostOf(home.journal, file, env) : [];
  if (lost.length === 0 && !mayBePending(file)) return;
  const { stdout } = await pulumi.run(["stack", "export", "--stack", stack], home.work, env);
  const left = JSON.parse(stdout) as StackExport;
  if (lost.length === 0 && !left.deployment.pending_operations?.length) return;
  const salt = saltIn(join(home.work, `Pulumi.${shortName(stack)}.yaml`));
  // With properties of the journal in it, until Pulumi has encrypted them.
  const input = JSON.stringify(settlePending(withJournal(left, lost, salt)));
  await pulumi.feed(["stack", "import", "--stack", stack], home.work, env, input);
  if (own) rmSync(home.journal, { force: true });
  say("a killed run left operations half done; they are taken up again");
}

type Stop = "SIGHUP" | "SIGINT" | "SIGTERM";

/** The first signal stops gracefully, the second at once, the third kills. */
export function passSignals(pulumi: Pick<Engine, "interrupt">, tell = say) {
  let first: Stop | undefined;
  const handler = (signal: Stop) => {
    // The shell and the kernel each tell of a terminal that is gone.
    if (signal === "SIGHUP" && first !== undefined) return;
    if (first === undefined) tell("stopping: the steps at work are finished first; once more to stop at once");
    first ??= signal;
    pulumi.interrupt();
  };
  const signals: readonly Stop[] = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, handler);
  return {
    signal: () => first,
    off() {
      for (const signal of signals) process.off(signal, handler);
    },
  };
}

/** Flags that leave something of what there is. */
const PARTS = ["target", "exclude", "excludeProtected"] as const;

/** A log that cannot be written is told once, and takes no other word with it. */
export function logTo(path: string, tell = say): (entry: Record<string, unknown>) => void {
  let told = false;
  return (entry) => {
    try {
      appendFileSync(path, `${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`, { mode: 0o600 });
    } catch (error) {
      if (!told) tell(`the log cannot be written: ${messageOf(error)}`);
      told = true;
    }
  };
}

const silent: Screen = { print: () => undefined, live: () => undefined, end: () => undefined };

/** The stack's only output is too long and too secret for a terminal: it is a file. */
function tellKubeconfig(home: Home): void {
  const path = kubeconfigPath(home);
  if (existsSync(path)) console.log(`kubeconfig: ${relative(process.cwd(), path)}`);
}

/** One run of Pulumi on the cluster, the program inline, from the arguments to the exit code. */
export async function runPulumi(verb: PulumiVerb, args: PulumiArguments, job: Job): Promise<number> {
  const since = Date.now();
  const { json, options } = args;
  const plan = isPlan(verb, options);
  const asks = verb === "destroy" && !plan && !args.yes;
  if (asks) refuseUnasked(job.cluster, process.stdin.isTTY);
  const stack = stackOf(job.cluster);
  const home = homeOf(job.cluster, args.file);
  const prepared = prepare(home);
  const { state, own } = prepared;
  const login = loginAdvice(home.state);
  if (login !== undefined) say(login);
  const known = () => state !== undefined && isKnown(stateFile(state, PROJECT.name, stack));
  if (verb === "preview" && job.refused !== undefined && known()) throw job.refused;
  if (verb === "destroy" && own && !known()) {
    say(`nothing to destroy: there is no state of "${stack}" in ${state}`);
    return EXIT.ok;
  }
  if (asks && !(await agreed(`Take "${job.cluster}" off all its hosts, and give these back as they were?`)))
    return EXIT.failed;
  const { bin, version, backend } = await withPulumi(prepared);
  const release = plan ? () => undefined : await claim(home.dir, verb);
  const pulumi = engine(bin, version, known);
  const signals = passSignals(pulumi);
  // What others set for Pulumi counts; and a backend elsewhere is read by others while we run.
  const journal = own && !plan && !process.env["PULUMI_SKIP_CHECKPOINTS"];
  const log = join(home.logs, `${new Date(since).toISOString().replaceAll(":", "-")}-${verb}.jsonl`);
  const quiet = json || options["diff"] === true;
  // With a part of the hosts gone, the cluster is still there.
  const ends = verb === "destroy" && !plan && !PARTS.some((name) => options[name] !== undefined);
  const view = report({
    verb,
    plan,
    screen: quiet ? silent : screen(),
    log: logTo(log),
  });
  try {
    if (!plan) await mend(home, backend, stack, pulumi);
    else if (own) tellOfJournal(home);
    const selected = await LocalWorkspace.selectStack(
      { stackName: stack, projectName: PROJECT.name, program: job.program },
      {
        workDir: home.work,
        projectSettings: PROJECT,
        pulumiCommand: pulumi.command,
        // A variable that is taken away is `undefined` here, which the SDK only passes through.
        envVars: { ...backend.env, ...runEnvironment(home, log, { changes: !plan, ends, journal }) } as Record<
          string,
          string
        >,
      },
    );
    if (journal) beginJournal(home.journal, stateFile(home.state, PROJECT.name, stack));
    await selected[verb]({
      ...options,
      onEvent: (event: EngineEvent) => {
        if (json && (event.diagnosticEvent?.severity as string) !== "debug") console.log(JSON.stringify(event));
        view.event(event);
      },
      ...(options["diff"] === true && !json
        ? { onOutput: (chunk: string) => process.stdout.write(chunk), color: process.stdout.isTTY ? "always" : "never" }
        : { suppressProgress: true, suppressOutputs: true }),
    });
    const { counts } = view.end();
    if (ends) rmSync(kubeconfigPath(home), { force: true });
    if (json) return EXIT.ok;
    if (verb === "up" && !plan && !quiet) tellKubeconfig(home);
    console.log(summary(verb, plan, counts, Date.now() - since));
    if (isUnseen(verb, options, counts)) say("no host was looked at: --refresh does");
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof PulumiError)) throw error;
    const { problems, counts, failedLooks } = view.end();
    const stopped = signals.signal();
    // No event told what was wrong: a bad passphrase, no access to the backend.
    if (problems + counts.failed === 0 && stopped === undefined) {
      console.error(error.message);
      return EXIT.failed;
    }
    if (!json) console.log(summary(verb, plan, counts, Date.now() - since, stopped ? "stopped" : "failed"));
    if (stopped) say("stopped; the next run goes on from here");
    else if (verb === "up" && onlyLooked(counts, failedLooks))
      say(
        "nothing was changed, as a look failed: up without --refresh makes what is to be made without looks before it",
      );
    else if (counts.failed > 0 && !plan) say(`the same command again goes on from here; log: ${log}`);
    if (!stopped && verb === "destroy" && options["continueOnError"] !== true)
      say("what was not tried is there still: --continue-on-error gives back all that does not wait for what failed");
    return EXIT[stopped ?? "failed"];
  } finally {
    if (journal) endJournal(home.journal, stateFile(home.state, PROJECT.name, stack), backend.env);
    signals.off();
    release();
  }
}
