import "./light-sdk.js";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf, exitWith, outliveReaders } from "./exit.js";
import { PULUMI_VERBS, type PulumiVerb, flagsHelp, pulumiArguments } from "./flags.js";
import { UsageError } from "../toolchain/errors.js";

interface Verb {
  name: string;
  usage: string;
  /** What it does, and the exit code. Loads what it needs itself: `--help` must not wait for Pulumi's SDK. */
  run: (argv: readonly string[]) => Promise<number>;
}

const MEANING: Readonly<Record<PulumiVerb, string>> = {
  preview: "show what `up` would change, and change nothing",
  up: "make the hosts what the cluster file says",
  refresh: "look at every host and record what is found",
  destroy: "take everything off again, and give the hosts back as they were",
};

const wantsHelp = (argv: readonly string[]) => argv.includes("--help") || argv.includes("-h");

function pulumiVerb(name: PulumiVerb): Verb {
  return {
    name,
    usage: `[-f cluster.yaml] [flags]  ${MEANING[name]}`,
    async run(argv) {
      if (wantsHelp(argv)) {
        console.log(`kubexm ${name} [flags]: ${MEANING[name]}\n\n${flagsHelp(name)}`);
        return 0;
      }
      const args = pulumiArguments(name, argv);
      const [{ runPulumi }, { clusterJob, stateJob }] = [await import("./pulumi.js"), await import("./job.js")];
      if (name === "destroy" && args.options["runProgram"] !== true)
        return runPulumi(name, args, await stateJob(args.file));
      // A file can be worth a thought where it is laid out anew; destroy takes back what there is.
      const tell = name === "up" || name === "preview" ? (line: string) => console.error(line) : () => undefined;
      return runPulumi(name, args, await clusterJob(args.file, { tell, makes: name === "up" }));
    },
  };
}

export const VERBS: readonly Verb[] = [
  ...PULUMI_VERBS.map(pulumiVerb),
  {
    name: "validate",
    usage: "[-f cluster.yaml] [--json]  tell everything that is wrong with the file, without touching a host",
    run: async (argv) => (await import("./validate.js")).validateCommand(argv),
  },
  {
    name: "preflight",
    usage: "[-f cluster.yaml] [--json]  check every host for what would be in the way, without changing anything",
    run: async (argv) => (await import("./preflight.js")).preflightCommand(argv),
  },
  {
    name: "drift",
    usage:
      "[-f cluster.yaml] [--json]  tell what differs on the hosts from the last up, without running Pulumi's engine",
    run: async (argv) => (await import("./drift.js")).driftCommand(argv),
  },
  {
    name: "config",
    usage: "[-f cluster.yaml] set|rm|get …  values that the cluster file takes from ${config:NAME}",
    run: async (argv) => (await import("./stack-config.js")).configCommand(argv),
  },
  {
    name: "fetch",
    usage: "[-f cluster.yaml] [--json]  download the files of a cluster ahead of time, without touching a host",
    run: async (argv) => (await import("./fetch.js")).fetchCommand(argv),
  },
  {
    name: "kubeconfig",
    usage: "[-f cluster.yaml]  write the administrator's kubeconfig again, and print where it is",
    run: async (argv) => (await import("./kubeconfig.js")).kubeconfigCommand(argv),
  },
  {
    name: "lab",
    usage: "up|down|status|ssh …  hosts to try it on, on this machine",
    run: async (argv) => (await import("../lab/main.js")).labCommand([...argv]),
  },
];

function help(): string {
  const verbs = VERBS.map(({ name, usage }) => {
    const [args = "", what = ""] = usage.split("  ");
    return `  ${`${name} ${args}`.padEnd(42)}${what}`;
  });
  return [
    "kubexm: Kubernetes on machines reachable over SSH; planned, applied and reverted by Pulumi",
    "",
    "usage: kubexm VERB [flags]",
    "",
    ...verbs,
    "",
    "kubexm VERB --help lists the flags of a verb; kubexm --version tells the version",
  ].join("\n");
}

function version(): string {
  const text = readFileSync(join(__dirname, "..", "..", "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

export async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    console.log(help());
    return name === undefined ? 2 : 0;
  }
  if (name === "--version" || name === "-v") {
    console.log(version());
    return 0;
  }
  return codeOf(() => {
    const verb = VERBS.find((verb) => verb.name === name);
    if (verb) return verb.run(rest);
    throw new UsageError(`kubexm: unknown verb "${name}"; verbs are ${VERBS.map((verb) => verb.name).join(", ")}`);
  });
}

if (require.main === module) {
  outliveReaders();
  void main(process.argv.slice(2)).then(exitWith);
}
