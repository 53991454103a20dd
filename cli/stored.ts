import type { Stored } from "../resources/provider.js";
import { UserError } from "../toolchain/errors.js";
import { PulumiError, engine } from "./engine.js";
import type { Home } from "./home.js";
import { nameIn, place } from "./stack.js";

const SECRET_KEY = "4dabf18193072939515e22adb298388d";

/** An exported secret is wrapped; its value is JSON text. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap);
  if (typeof value !== "object" || value === null) return value;
  if (SECRET_KEY in value && "plaintext" in value) return JSON.parse(String(value.plaintext)) as unknown;
  return plain(value as Record<string, unknown>);
}

const plain = (tree: Readonly<Record<string, unknown>> = {}) =>
  Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, unwrap(value)]));

/** The resources of a cluster's stack with their secrets in clear: they hold what is needed to reach the hosts. */
export async function storedOf(file: string): Promise<{ home: Home; resources: Stored[] }> {
  const { bin, home, backend, version, stack } = await place(nameIn(file), file);
  const none = () => new UserError(`there is no state of "${stack}" yet: run kubexm up -f ${file} first`);
  const pulumi = engine(bin, version, () => true);
  const exporting = ["stack", "export", "--show-secrets", "--stack", stack];
  const { stdout } = await pulumi.run(exporting, home.work, backend.env).catch((error: unknown) => {
    if (!(error instanceof PulumiError && error.message.includes("no stack named"))) throw error;
    throw none();
  });
  const { deployment } = JSON.parse(stdout) as { deployment: { resources?: Stored[] } };
  const resources = (deployment.resources ?? []).map(({ type, outputs }) => ({ type, outputs: plain(outputs) }));
  // A preview makes an empty one.
  if (resources.length === 0) throw none();
  return { home, resources };
}
