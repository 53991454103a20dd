import type { Stored } from "../resources/provider.js";
import { UserError } from "../toolchain/errors.js";
import { PulumiError, engine } from "./engine.js";
import { type Home, PROJECT, foreignBackend, homeOf, stackOf, tellOfJournal } from "./home.js";
import { hasSecret } from "./report.js";
import { nameIn, place } from "./stack.js";
import { SECRET_MARK, resourcesIn, stateFile } from "./state-file.js";

/** An exported secret is wrapped; its value is JSON text. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap);
  if (typeof value !== "object" || value === null) return value;
  if (SECRET_MARK in value && "plaintext" in value) return JSON.parse(String(value.plaintext)) as unknown;
  return plain(value as Record<string, unknown>);
}

const plain = (tree: Readonly<Record<string, unknown>> = {}) =>
  Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, unwrap(value)]));

/**
 * As they lie in a state of our own, without the outputs that nobody asks for; undefined where others are encrypted. To start
 * Pulumi takes as long as to look at a dozen hosts.
 */
function asTheyLie({ home, stack, unasked }: { home: Home; stack: string; unasked: readonly string[] }) {
  if (foreignBackend() !== undefined) return undefined;
  const made = resourcesIn(stateFile(home.state, PROJECT.name, stack))?.filter(({ custom }) => custom === true);
  const asked = made?.map(({ type, outputs = {} }): Stored => ({
    type,
    outputs: Object.fromEntries(Object.entries(outputs).filter(([key]) => !unasked.includes(key))),
  }));
  return asked?.some(({ outputs }) => hasSecret(outputs)) ? undefined : asked;
}

async function exported(file: string, cluster: string): Promise<Stored[]> {
  const { bin, home, backend, version, stack } = await place(cluster, file);
  const pulumi = engine(bin, version, () => true);
  const exporting = ["stack", "export", "--show-secrets", "--stack", stack];
  const { stdout } = await pulumi.run(exporting, home.work, backend.env).catch((error: unknown) => {
    if (!(error instanceof PulumiError && error.message.includes("no stack named"))) throw error;
    return { stdout: '{ "deployment": {} }' };
  });
  const { deployment } = JSON.parse(stdout) as { deployment: { resources?: Stored[] } };
  return (deployment.resources ?? []).map(({ type, outputs }) => ({ type, outputs: plain(outputs) }));
}

/** The resources of a cluster's stack with their secrets in clear: they hold what is needed to reach the hosts. */
export async function storedOf(
  file: string,
  { unasked = [] }: { unasked?: readonly string[] } = {},
): Promise<{ home: Home; resources: Stored[] }> {
  const cluster = await nameIn(file);
  const [home, stack] = [homeOf(cluster, file), stackOf(cluster)];
  if (foreignBackend() === undefined) tellOfJournal(home);
  const resources = asTheyLie({ home, stack, unasked }) ?? (await exported(file, cluster));
  // A preview makes an empty one.
  if (resources.length === 0)
    throw new UserError(`there is no state of "${stack}" yet: run kubexm up -f ${file} first`);
  return { home, resources };
}
