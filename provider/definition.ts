import type { z } from "zod";
import type { Ask } from "./ask";
import type { Facts } from "./facts";
import type { Verify } from "./script";
import type { Command } from "./shell";
import type { Step } from "./step";

/** Only some changes are refused; it is given all the new arguments too. */
export interface FixedWhere {
  readonly where: (was: unknown, is: unknown, news: Readonly<Record<string, unknown>>) => boolean;
  readonly reason: string;
}

/** A component as data: arguments, and the steps that follow from them and from what the host is. */
export interface Definition<A extends z.ZodObject = z.ZodObject> {
  /** Name of the class, of the resource type and of its page in the docs. */
  readonly kind: string;
  /** One sentence for the docs. */
  readonly about: string;
  readonly args: A;
  /** Arguments whose values are kept encrypted in the state. */
  readonly secrets?: readonly (keyof z.output<A> & string)[];
  /** Arguments that are only kept so where they hold a secret, and how that is seen. */
  readonly secretWhere?: Readonly<Partial<Record<keyof z.output<A> & string, (value: unknown) => boolean>>>;
  /** It stands in a cluster that any of several hosts speaks for: another host is no other thing. */
  readonly ofCluster?: true;
  /** Arguments (paths with dots) that cannot be changed once the thing is made, each with the reason and what to do. */
  readonly fixed?: Readonly<Record<string, string | FixedWhere>>;
  /** A pure function: no SSH, no clock, no environment. */
  readonly steps: (args: z.output<A>, facts: Facts) => readonly (Step | readonly Step[])[];
  readonly verify?: (args: z.output<A>, facts: Facts) => Verify | undefined;
  /** Prints what the program is told once all is made: the output `revealed`, a secret. */
  readonly reveal?: (args: z.output<A>) => Command;
  /** The name that a step of another component renews: what was made before is not there any more. */
  readonly renewedBy?: (args: z.output<A>) => string;
  /** What other hosts do before this one is taken back, even if it can no longer be reached. */
  readonly farewell?: (args: z.output<A>, about: { lost: boolean }) => Ask | undefined;
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
