import { z } from "zod";
import type { Definition } from "./definition";
import { ArgumentError } from "./errors";
import { unknownFacts, type Facts } from "./facts";
import { commonArgs } from "./options";
import type { Work } from "./script";
import { keyOf, type Step } from "./step";
import { maybeUnknown, unknownPaths } from "./unknown";

export const common = z.object(commonArgs).strict();
export type Common = z.output<typeof common>;

export interface Failure {
  readonly property: string;
  readonly reason: string;
}

export interface Parsed {
  readonly common: Common;
  readonly args: Record<string, unknown>;
}

const own = new Set(Object.keys(commonArgs));

/** Splits the inputs of a resource into what all components take and what this one takes. */
function split(inputs: Readonly<Record<string, unknown>>) {
  const entries = Object.entries(inputs).filter(([key]) => key !== "__provider");
  return {
    common: Object.fromEntries(entries.filter(([key]) => own.has(key))),
    args: Object.fromEntries(entries.filter(([key]) => !own.has(key))),
  };
}

const dotted = (path: readonly PropertyKey[]) => path.map(String).join(".");

/** Every problem of the inputs with its path; what depends on a value not known yet is left for later. */
export function problems(definition: Definition, inputs: Readonly<Record<string, unknown>>): Failure[] {
  const parts = split(inputs);
  const results = [common.safeParse(parts.common), definition.args.strict().safeParse(parts.args)];
  const unknown = unknownPaths(inputs);
  return results.flatMap((result) =>
    (result.error?.issues ?? [])
      .filter((issue) => !maybeUnknown(unknown, issue.path))
      .map((issue) => ({ property: dotted(issue.path), reason: issue.message })),
  );
}

/** What inputs that are not all known yet leave out: compared with the old ones, it would look like a change. */
export function defaultsFor({ args }: Definition, inputs: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const missing = Object.entries<z.ZodType>({ ...commonArgs, ...args.shape }).filter(([key]) => !(key in inputs));
  const defaults = missing.map(([key, schema]) => [key, schema.safeParse(undefined).data] as const);
  return Object.fromEntries(defaults.filter(([, value]) => value !== undefined));
}

/** The arguments parsed last, by kind: the hosts of a cluster come one after the other with the same. */
const last = new WeakMap<Definition, { text: string; args: Record<string, unknown> }>();

function parseArgs(definition: Definition, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = JSON.stringify(given);
  const known = last.get(definition);
  if (known?.text === text) return known.args;
  const args = definition.args.strict().parse(given);
  last.set(definition, { text, args });
  return args;
}

/**
 * What the arguments alone say, where the host is not known yet, and without those that are not known yet themselves;
 * undefined where they mean nothing without one of these.
 */
export function knownArguments(definition: Definition, inputs: Readonly<Record<string, unknown>>) {
  const heads = unknownPaths(inputs).map(([head = ""]) => String(head));
  const unknown = [...new Set(heads)].filter((key) => !own.has(key));
  if (!unknown.every((key) => definition.args.shape[key] instanceof z.ZodOptional)) return undefined;
  const known = Object.entries(split(inputs).args).filter(([key]) => !unknown.includes(key));
  return { args: parseArgs(definition, Object.fromEntries(known)), unknown };
}

export function parse(definition: Definition, inputs: Readonly<Record<string, unknown>>): Parsed {
  const parts = split(inputs);
  return { common: common.parse(parts.common), args: parseArgs(definition, parts.args) };
}

/** What an earlier version stored may hold keys that this one does not know any more, at any depth. */
function parseKnown<S extends z.ZodType>(schema: S, stored: unknown): z.output<S> {
  const known = structuredClone(stored);
  for (const issue of schema.safeParse(known).error?.issues ?? []) {
    if (issue.code !== "unrecognized_keys") continue;
    const holder = issue.path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown>)[key], known);
    for (const key of issue.keys) Reflect.deleteProperty(holder as object, key);
  }
  return schema.parse(known);
}

export const storedCommon = (stored: Readonly<Record<string, unknown>>): Common =>
  parseKnown(common, split(stored).common);

/** Undefined where this version cannot read them even so. */
export function storedArguments(definition: Definition, stored: Readonly<Record<string, unknown>>): Parsed | undefined {
  try {
    return { common: storedCommon(stored), args: parseKnown(definition.args.strict(), split(stored).args) };
  } catch (error) {
    if (error instanceof z.ZodError) return undefined;
    throw error;
  }
}

/** The name of a component in the ledger: the same for the same thing after a lost state, another for any other. */
export function ownerOf(kind: string, name: string): string {
  const full = `${kind}.${name}`;
  const plain = full.replaceAll(/[^A-Za-z0-9._-]/g, "_");
  return plain === full ? plain : `${plain}-${keyOf(full)}`;
}

export function stepsOf(definition: Definition, args: Record<string, unknown>, facts: Facts): Step[] {
  const steps = definition.steps(args, facts).flat();
  const twice = steps.find((step, i) => steps.findIndex((other) => other.id === step.id) !== i);
  if (twice) throw new ArgumentError(twice.id, "two steps are about it");
  return steps;
}

export function workOf(
  definition: Definition,
  { common: { resource }, args }: Parsed,
  facts: Facts = unknownFacts,
): Work {
  const steps = stepsOf(definition, args, facts);
  const verify = definition.verify?.(args, facts);
  return { owner: ownerOf(definition.kind, resource.name), steps, ...(verify && { verify }) };
}

/** Where in the arguments a value stands, for messages about what was built from it. */
export function pathOf(args: unknown, value: string, at = ""): string | undefined {
  if (args === value || (typeof args === "number" && String(args) === value)) return at;
  if (typeof args !== "object" || args === null) return undefined;
  for (const [key, item] of Object.entries(args)) {
    const found = pathOf(item, value, at === "" ? key : `${at}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
