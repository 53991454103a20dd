import * as pulumi from "@pulumi/pulumi";
import type { z } from "zod";
import type { Definition } from "./definition";
import type { Host } from "./host";
import type { DeepInput } from "./inputs";

/** What a user may say about any component. */
export interface CommonArgs {
  host: Host;
  /** On destroy, leave the host as it is and only drop the records. */
  retain?: boolean;
  /** On destroy, do not insist that the host can be reached. */
  forget?: boolean;
  /** If it fails, take back at once what was done. */
  rollbackOnFailure?: boolean;
}

/** An object without keys has the type of one with any key, and none of them may be given: hence the shape's keys. */
export type ComponentArgs<A extends z.ZodObject> = CommonArgs & {
  [K in keyof z.input<A> as K extends keyof A["shape"] ? K : never]: DeepInput<z.input<A>[K]>;
};

export type ComponentClass<A extends z.ZodObject> = (new (
  name: string,
  args: ComponentArgs<A>,
  opts?: pulumi.CustomResourceOptions,
) => ComponentResource) & { readonly definition: Definition<A> };

/** A component on a host, as a resource in a program. */
export class ComponentResource extends pulumi.CustomResource {
  /** Differences seen by the last look; empty when all is as wanted. */
  declare readonly drift: pulumi.Output<readonly { step: string; want: string; found: string }[]>;
  /** What the host tells, where the component has something to tell. A secret. */
  declare readonly revealed: pulumi.Output<string>;
}

/**
 * What the provider process runs. A constant text, so that it never differs, and a mended bug is mended for old state too.
 * It is resolved from the folder of the program upward.
 */
const loader = (kind: string) => `exports.handler=()=>require("kubexm/provider").forKind(${JSON.stringify(kind)})`;

/**
 * The URN without what it hangs on: as an ordinary Output it would make the resource depend on its parent component,
 * and so on all children of that, itself among them.
 */
const urnOf = (name: string, type: string, parent: pulumi.Resource | undefined): Promise<string> =>
  new Promise((resolve) => void pulumi.createUrn(name, type, parent).apply(resolve));

/**
 * Pulumi keeps with each resource the files and lines that led to its making: here a dozen of ours, by where this machine has them.
 * They would be a fifth of the state, which Pulumi writes twice for each resource that changes, all of it.
 */
const withoutTrace = ({ name, message }: Error) => `${name}: ${message}`;
/** What it is set to is put back as it was, not called. */
const traces: { prepareStackTrace?: unknown } = Error;

type Arguments = Readonly<Record<string, unknown>>;

/** What is a secret, or holds one, becomes a secret of Pulumi's: its engine keeps outputs of that name encrypted, too. */
export function guarded({ secrets = [], secretWhere = {} }: Definition, args: Arguments): Arguments {
  const guard = ([key, value]: [string, unknown]): [string, unknown] => {
    const holds = secretWhere[key];
    if (secrets.includes(key)) return [key, pulumi.secret(value)];
    if (holds === undefined) return [key, value];
    const all = pulumi.output(value) as pulumi.Output<unknown>;
    return [key, all.apply((known) => (holds(known) ? pulumi.secret(known) : known))];
  };
  return Object.fromEntries(Object.entries(args).map(guard));
}

/** The class of a component, for programs. */
export function resourceClass<A extends z.ZodObject>(definition: Definition<A>): ComponentClass<A> {
  const secrets: readonly string[] = definition.secrets ?? [];
  const outputs = definition.reveal ? ["revealed"] : [];
  return class extends ComponentResource {
    static readonly definition = definition;
    constructor(name: string, { host, ...args }: ComponentArgs<A>, opts: pulumi.CustomResourceOptions = {}) {
      const type = `dynamic/kubexm:${definition.kind}`;
      const inputs: pulumi.Inputs = {
        drift: undefined,
        facts: undefined,
        ...Object.fromEntries(outputs.map((name) => [name, undefined])),
        ...guarded(definition, args),
        host: host.spec,
        resource: { name, urn: urnOf(name, `pulumi-nodejs:${type}`, opts.parent) },
        __provider: loader(definition.kind),
      };
      const { prepareStackTrace } = traces;
      traces.prepareStackTrace = withoutTrace;
      try {
        super(`pulumi-nodejs:${type}`, name, inputs, {
          ...opts,
          // Both would be one thing on one host: what is made first would go with the old one.
          deleteBeforeReplace: true,
          additionalSecretOutputs: [...(opts.additionalSecretOutputs ?? []), ...secrets, ...outputs],
        });
      } finally {
        traces.prepareStackTrace = prepareStackTrace;
      }
    }
  };
}
