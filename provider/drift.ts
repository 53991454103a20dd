import { textOf } from "./errors";
import { definitionOf } from "./definition";
import { lookAt, nameOf, type Inputs, type World } from "./lifecycle";
import type { Drift } from "./step";

/** One resource as the state of a stack holds it, its secrets in clear. */
export interface Stored {
  readonly type: string;
  readonly outputs: Inputs;
}

export interface HostDrift extends Drift {
  readonly host: string;
  readonly component: string;
  /** `-` found, `+` wanted: of contents that a person may see. */
  readonly lines?: readonly string[];
}

export interface DriftReport {
  readonly drift: readonly HostDrift[];
  /** Hosts that could not be looked at, and why. */
  readonly unseen: readonly { readonly host: string; readonly why: string }[];
  readonly hosts: number;
}

const prefix = "pulumi-nodejs:dynamic/kubexm:";

/** Of a state: what this provider made, not the stack, a group of resources or a provider. */
export const isOurs = ({ type }: { readonly type: string }): boolean => type.startsWith(prefix);

/** The looks of a refresh without the engine: all hosts at once, one exec each. */
export async function lookForDrift(stored: readonly Stored[], world: World): Promise<DriftReport> {
  const ours = stored.filter(isOurs);
  const looks = ours.map(async ({ type, outputs }) => {
    const kind = type.slice(prefix.length);
    const { host, name } = nameOf(outputs);
    try {
      const { outputs: now, lines } = await lookAt(definitionOf(kind), world, outputs);
      const drift = now.drift.map((item): HostDrift => {
        const rows = lines.get(item.step);
        return { host, component: `${kind} ${name}`, ...item, ...(rows && { lines: rows }) };
      });
      return { host, drift };
    } catch (error) {
      return { host, drift: [], why: textOf(error) };
    }
  });
  const results = await Promise.all(looks);
  const failed = new Map(results.flatMap(({ host, why }) => (why === undefined ? [] : [[host, why] as const])));
  return {
    drift: results.flatMap(({ drift }) => drift),
    unseen: [...failed].map(([host, why]) => ({ host, why })),
    hosts: new Set(results.map(({ host }) => host)).size,
  };
}
