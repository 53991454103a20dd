import { isDeepStrictEqual } from "node:util";
import { parse, workOf } from "./arguments";
import type { Definition } from "./definition";
import type { KnownChanges } from "./engine";
import type { Facts } from "./facts";
import { madeOf, type Work } from "./script";
import { secretLeaves } from "./ssh/spec";
import type { Step } from "./step";

/** What inputs come to on their host. */
interface Meaning {
  /** Which host it is, without how it is reached. */
  readonly place: unknown;
  readonly work: Work;
  readonly reveal: string | undefined;
}

/** What says only how a host is reached, not which it is. */
const reach: readonly string[] = [
  ...["user", "bastions", "agent", "privateKeyPath", "hostKey", "hostKeyChecking", "knownHostsPath"],
  ...["connectTimeout", "port"],
  ...secretLeaves,
];

function meaningOf(
  definition: Definition,
  inputs: Readonly<Record<string, unknown>>,
  facts: Facts | undefined,
): Meaning | undefined {
  try {
    const parsed = parse(definition, inputs);
    return {
      place: Object.entries(parsed.common.host).filter(([key]) => !reach.includes(key)),
      work: workOf(definition, parsed, facts),
      reveal: definition.reveal?.(parsed.args).text,
    };
  } catch {
    // What an earlier version stored may mean nothing to this one.
    return undefined;
  }
}

const facets = ({ place, work: { steps, verify }, reveal }: Meaning) => [
  place,
  steps.map(({ id, want, look, make }) => [id, want, look.text, make.text]),
  verify?.title,
  reveal,
];

/** A thing that was looked at in the same way before, and had what was wanted then, differs if something else is wanted. */
const isKnown = (step: Step, before: Step | undefined) => before !== undefined && step.look.text === before.look.text;

export type Difference = "nothing" | "unknown" | KnownChanges;

/**
 * What new inputs change of what is there, going by what the old ones made. Unknown where that cannot be said without a
 * look: another host, things that are new, content that has to be sent, other hosts that have to be asked.
 */
export function differenceOf(
  definition: Definition,
  olds: Readonly<Record<string, unknown>>,
  news: Readonly<Record<string, unknown>>,
  facts: Facts | undefined,
): Difference {
  const [before, after] = [olds, news].map((inputs) => meaningOf(definition, inputs, facts));
  if (before === undefined || after === undefined) return "unknown";
  if (isDeepStrictEqual(facets(before), facets(after))) return "nothing";
  if (!facts || !isDeepStrictEqual(before.place, after.place)) return "unknown";
  const had = new Map(before.work.steps.map((step) => [step.id, step]));
  const { work } = after;
  const changed = work.steps.filter((step) => !isDeepStrictEqual(step.want, had.get(step.id)?.want));
  if (!work.steps.every((step) => isKnown(step, had.get(step.id)))) return "unknown";
  // What is taken back may change what others find.
  if (had.size > work.steps.length) return "unknown";
  if (changed.some(({ bodies, ask }) => bodies ?? ask)) return "unknown";
  const make = changed.map((step) => work.steps.indexOf(step));
  return { work, known: { machineId: facts.machineId, made: madeOf(before.work) }, make };
}
