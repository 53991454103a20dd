import { createRequire } from "node:module";

/**
 * A module that is loaded when it is first needed. The provider process starts with every run, and most runs need few of
 * the packages that its components could use.
 */
export function later(from: string, name: string): () => unknown {
  let loaded: unknown;
  const load: (name: string) => unknown = createRequire(from);
  return () => (loaded ??= load(name));
}
