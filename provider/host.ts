import * as pulumi from "@pulumi/pulumi";
import type { z } from "zod";
import type { DeepInput } from "./inputs";
import { secretLeaves, type hostSpec } from "./ssh/spec";

export type HostArgs = DeepInput<Omit<z.input<typeof hostSpec>, "name">>;

type Leaves = Readonly<Record<string, unknown>>;

/** Passwords and keys become Pulumi secrets, wherever they come from. */
function guarded(args: Leaves): Leaves {
  const bastions = args["bastions"];
  const leaves = Object.entries(args).map(([key, value]) => [
    key,
    (secretLeaves as readonly string[]).includes(key) && value !== undefined ? pulumi.secret(value) : value,
  ]);
  return {
    ...Object.fromEntries(leaves),
    ...(Array.isArray(bastions) && {
      bastions: bastions.map((hop) => (typeof hop === "object" ? guarded(hop as Leaves) : (hop as unknown))),
    }),
  };
}

/** A machine and the way to it. Not a resource: components carry what they need of it. */
export class Host {
  readonly spec: DeepInput<z.input<typeof hostSpec>>;
  constructor(
    readonly name: string,
    args: HostArgs,
  ) {
    this.spec = { ...guarded(args as Leaves), name } as DeepInput<z.input<typeof hostSpec>>;
  }
}
