import * as pulumi from "@pulumi/pulumi";
import type { z } from "zod";
import type { DeepInput } from "./inputs";
import { hostSpec, secretLeaves } from "./ssh/spec";

export { hostSpec };
export type HostArgs = DeepInput<Omit<z.input<typeof hostSpec>, "name">>;

type Leaves = Readonly<Record<string, unknown>>;

/** Passwords and keys become Pulumi secrets, wherever they come from. */
function guarded(args: Leaves): Leaves {
  const guard = (key: string, value: unknown): unknown => {
    if ((secretLeaves as readonly string[]).includes(key) && value !== undefined) return pulumi.secret(value);
    return key === "bastions" && Array.isArray(value) ? value.map((hop) => guarded(hop as Leaves)) : value;
  };
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, guard(key, value)]));
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
