import * as pulumi from "@pulumi/pulumi";

/** Host leaves a program may give as Outputs of other resources, with what stands for them while the rest is checked. */
const placeholders: Readonly<Record<string, (name: string) => unknown>> = {
  address: (name) => `${name}.address-known-later.invalid`,
  internalAddress: () => undefined,
  user: () => undefined,
  port: () => undefined,
  password: () => undefined,
  privateKey: () => undefined,
  passphrase: () => undefined,
  sudoPassword: () => undefined,
  hostKey: () => undefined,
};

type Leaves = Readonly<Record<string, unknown>>;

/** Parts a host into what is plain data and what is an Output, so that the plain part can be checked now. */
export function splitOutputs(host: Leaves): { plain: Leaves; later: Leaves } {
  const isLater = ([, value]: [string, unknown]) => pulumi.Output.isInstance(value) || value instanceof Promise;
  const later = Object.fromEntries(Object.entries(host).filter(isLater));
  const plain = Object.entries(host).flatMap(([key, value]) => {
    if (!(key in later)) return [[key, value]];
    const standIn = placeholders[key]?.(String(host["name"]));
    return standIn === undefined ? [] : [[key, standIn]];
  });
  const refused = Object.keys(later).filter((key) => !(key in placeholders));
  if (refused.length > 0) {
    throw new pulumi.RunError(
      `host ${String(host["name"])}: ${refused.join(", ")} must be plain data, as it decides which resources there are`,
    );
  }
  return { plain: Object.fromEntries(plain) as Leaves, later };
}
