import { parseArgs } from "node:util";
import { UsageError, understood } from "../toolchain/errors.js";
import type { Row } from "./report.js";

export interface Options {
  /** Numbers of lab hosts, for groups that compare several. */
  hosts: readonly number[];
  /** How often everything is measured; the median counts. */
  runs: number;
  /** Other tools to run beside. */
  peers: readonly string[];
}

export interface Measured {
  versions: Record<string, string>;
  rows: Row[];
}

export type Group = (options: Options, save: (sofar: Measured) => void) => Promise<Measured>;

/** Loaded when they run: a mistake in the arguments must not wait for them. */
export const GROUPS: Readonly<Record<string, Group>> = {
  lab: async (...given) => (await import("./groups/lab.js")).lab(...given),
  provider: async (...given) => (await import("./groups/provider.js")).provider(...given),
  hosts: async (...given) => (await import("./groups/hosts.js")).hosts(...given),
  cluster: async (...given) => (await import("./groups/cluster.js")).cluster(...given),
};

/** The group provider knows them, and hosts the first two; all together take an hour at 40 hosts, pyinfra alone a few minutes. */
const PEERS = ["pyinfra", "mitogen", "ansible"];
const USAGE = `usage: npm run bench -- [GROUP…] [--hosts 10,40] [--runs 3] [--peers ${PEERS.join(",")}]; groups are ${Object.keys(GROUPS).join(", ")}`;
const MOST_HOSTS = 80;
const FEWEST_RUNS = 3;

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new UsageError(`--${flag} ${text}: expected a number from ${least} to ${most}; ${USAGE}`);
}

function parsed(argv: readonly string[]) {
  const flags = {
    hosts: { type: "string", default: "10,40" },
    runs: { type: "string", default: "3" },
    peers: { type: "string", default: PEERS.join(",") },
  } as const;
  return understood(
    () => parseArgs({ args: [...argv], options: flags, allowPositionals: true }),
    (reason) => new UsageError(`${reason}; ${USAGE}`),
  );
}

export function benchArguments(argv: readonly string[]): { groups: string[]; options: Options } {
  const { values, positionals } = parsed(argv);
  const unknown = positionals.find((name) => !Object.hasOwn(GROUPS, name));
  if (unknown !== undefined) throw new UsageError(`bench: there is no group ${unknown}; ${USAGE}`);
  const peers = values.peers.split(",");
  const stranger = peers.find((name) => !PEERS.includes(name));
  if (stranger !== undefined)
    throw new UsageError(`--peers ${stranger}: expected some of ${PEERS.join(", ")}; ${USAGE}`);
  const hosts = values.hosts.split(",").map((text) => wholeNumber("hosts", text, 1, MOST_HOSTS));
  return {
    groups: positionals.length > 0 ? [...new Set(positionals)] : Object.keys(GROUPS),
    options: { hosts: [...new Set(hosts)], runs: wholeNumber("runs", values.runs, FEWEST_RUNS, 20), peers },
  };
}
