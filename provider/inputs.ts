import type * as pulumi from "@pulumi/pulumi";

/** The same shape, with any leaf allowed to become known later. */
export type DeepInput<T> = T extends string | number | boolean | null | undefined
  ? pulumi.Input<T>
  : T extends readonly (infer I)[]
    ? pulumi.Input<DeepInput<I>[]>
    : T extends object
      ? pulumi.Input<{ [K in keyof T]: DeepInput<T[K]> }> | { [K in keyof T]: DeepInput<T[K]> }
      : pulumi.Input<T>;
