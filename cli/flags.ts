import { parseArgs } from "node:util";
import { USUAL_FILE } from "../resources/config/read.js";
import { UsageError, understood } from "../toolchain/errors.js";

export const PULUMI_VERBS = ["preview", "up", "refresh", "destroy"] as const;
export type PulumiVerb = (typeof PULUMI_VERBS)[number];

type Kind = "boolean" | "string" | "list" | "number";

interface Flag {
  kind: Kind;
  verbs: readonly PulumiVerb[];
  help: string;
  /** The option of the Automation API that carries it; none when kubexm itself acts on it. */
  option?: string;
}

const all = PULUMI_VERBS;
const changing: readonly PulumiVerb[] = ["up", "refresh", "destroy"];

/** Every flag of the four verbs. What stands here is what is passed on; nothing else is. */
export const FLAGS: Readonly<Record<string, Flag>> = {
  file: { kind: "string", verbs: all, help: "the cluster file (cluster.yaml)" },
  yes: { kind: "boolean", verbs: changing, help: "no question before a destroy" },
  json: { kind: "boolean", verbs: all, help: "print the engine's events as JSON lines" },
  diff: { kind: "boolean", verbs: ["preview", "up", "destroy"], help: "show Pulumi's own full diff", option: "diff" },
  refresh: {
    kind: "boolean",
    verbs: ["preview", "up", "destroy"],
    help: "look at the hosts first, so that drift counts",
    option: "refresh",
  },
  target: { kind: "list", verbs: all, help: "only this resource (URN, * matches); repeatable", option: "target" },
  "target-dependents": { kind: "boolean", verbs: all, help: "and what depends on it", option: "targetDependents" },
  exclude: { kind: "list", verbs: all, help: "all but this resource; repeatable", option: "exclude" },
  "exclude-dependents": { kind: "boolean", verbs: all, help: "nor what depends on it", option: "excludeDependents" },
  replace: { kind: "list", verbs: ["preview", "up"], help: "make this resource anew; repeatable", option: "replace" },
  parallel: { kind: "number", verbs: all, help: "resources worked on at once (64)", option: "parallel" },
  message: { kind: "string", verbs: all, help: "a note for the update's history", option: "message" },
  "expect-no-changes": {
    kind: "boolean",
    verbs: ["preview", "up", "refresh"],
    help: "fail if anything would change",
    option: "expectNoChanges",
  },
  "continue-on-error": {
    kind: "boolean",
    verbs: ["up", "destroy"],
    help: "go on with what does not depend on a failure",
    option: "continueOnError",
  },
  "preview-only": {
    kind: "boolean",
    verbs: ["refresh", "destroy"],
    help: "show what it would do",
    option: "previewOnly",
  },
  "exclude-protected": {
    kind: "boolean",
    verbs: ["destroy"],
    help: "keep protected resources",
    option: "excludeProtected",
  },
  "run-program": {
    kind: "boolean",
    verbs: ["refresh", "destroy"],
    help: "run the program, not the state alone",
    option: "runProgram",
  },
};

const SHORT: Readonly<Record<string, string>> = { file: "f", yes: "y" };

export interface PulumiArguments {
  file: string;
  yes: boolean;
  json: boolean;
  /** Options of the Automation API by their names there. */
  options: Record<string, string | number | boolean | readonly string[]>;
}

export const flagsOf = (verb: PulumiVerb) => Object.entries(FLAGS).filter(([, flag]) => flag.verbs.includes(verb));

function supported(verb: PulumiVerb): string {
  return flagsOf(verb)
    .map(([name]) => `--${name}`)
    .join(" ");
}

/** node:util parses command lines well enough: no dependency for it. */
function parse(verb: PulumiVerb, argv: readonly string[]) {
  const options = Object.fromEntries(
    flagsOf(verb).map(([name, { kind }]) => [
      name,
      {
        type: kind === "boolean" ? ("boolean" as const) : ("string" as const),
        multiple: kind === "list",
        ...(SHORT[name] !== undefined && { short: SHORT[name] }),
      },
    ]),
  );
  return understood(
    () => parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values,
    (reason) => new UsageError(`kubexm ${verb}: ${reason}; flags are ${supported(verb)}`),
  );
}

function numberOf(verb: PulumiVerb, name: string, text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new UsageError(`kubexm ${verb}: --${name} takes a positive whole number, not "${text}"`);
}

/** The arguments of one of the four verbs, or a UsageError that names the flags there are. */
export function pulumiArguments(verb: PulumiVerb, argv: readonly string[]): PulumiArguments {
  const values = parse(verb, argv);
  const options: PulumiArguments["options"] = {};
  for (const [name, { kind, option }] of flagsOf(verb)) {
    const value = values[name];
    if (option === undefined || value === undefined) continue;
    options[option] = kind === "number" ? numberOf(verb, name, String(value)) : (value as string | boolean | string[]);
  }
  const { file, yes, json } = values;
  return {
    file: typeof file === "string" ? file : USUAL_FILE,
    yes: yes === true,
    json: json === true,
    options,
  };
}

/** The help of one verb, a line per flag. */
export function flagsHelp(verb: PulumiVerb): string {
  return flagsOf(verb)
    .map(([name, { kind, help }]) => {
      const short = SHORT[name] === undefined ? "    " : `-${SHORT[name]}, `;
      return `  ${`${short}--${name}${kind === "boolean" ? "" : ` ${kind === "number" ? "N" : "VALUE"}`}`.padEnd(26)} ${help}`;
    })
    .join("\n");
}
