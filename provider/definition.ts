import type { z } from "zod";
import type { Facts } from "./facts";
import type { Verify } from "./script";
import type { Step } from "./step";

/** A component as data: arguments, and the steps that follow from them and from what the host is. */
export interface Definition<A extends z.ZodObject = z.ZodObject> {
  /** Name of the class, of the resource type and of its page in the docs. */
  readonly kind: string;
  /** One sentence for the docs. */
  readonly about: string;
  readonly args: A;
  /** Arguments whose values are kept encrypted in the state. */
  readonly secrets?: readonly (keyof z.output<A> & string)[];
  /** A pure function: no SSH, no clock, no environment. */
  readonly steps: (args: z.output<A>, facts: Facts) => readonly (Step | readonly Step[])[];
  readonly verify?: (args: z.output<A>, facts: Facts) => Verify | undefined;
}

const definitions = new Map<string, Definition>();

export function define(definition: Definition): void {
  if (definitions.has(definition.kind)) throw new Error(`two components are called ${definition.kind}`);
  definitions.set(definition.kind, definition);
}

export function definitionOf(kind: string): Definition {
  const found = definitions.get(kind);
  if (!found) throw new Error(`this version of kubexm has no component ${kind}; install the version that made it`);
  return found;
}

export const allDefinitions = (): readonly Definition[] => [...definitions.values()];
