import type { SshCount } from "../hosts.js";
import type { Taken } from "../measure.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import type { ProviderRun } from "../run-provider.js";

export interface Run extends Taken {
  /** Seconds, by host. */
  hostCpu: number[];
  /** By host; empty where it was not counted. */
  ssh: SshCount[];
}

export type Runs = Record<string, { first: Run[]; again: Run[] }>;
type Phase = "first" | "again";

const OTHERS = ["script", "pyinfra", "mitogen", "ansible"] as const;
/** What a plain SSH exec for each host does is the floor for whoever looks, and the work itself for whoever makes. */
const NAMES: Readonly<Record<Phase, Readonly<Record<string, string>>>> = {
  first: { script: "script" },
  again: { script: "floor" },
};

function peersOf(runs: Runs, phase: Phase, figure: (runs: readonly Run[]) => number): Record<string, number> {
  const entries = OTHERS.flatMap((name) => {
    const found = runs[name]?.[phase];
    return found ? [[NAMES[phase][name] ?? name, figure(found)] as const] : [];
  });
  return Object.fromEntries(entries);
}

const middle = (key: "seconds" | "cpuSeconds" | "peakMB") => (runs: readonly Run[]) =>
  median(runs.map((run) => run[key]));
const most = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), 0);
const hostCpu = (runs: readonly Run[]) => median(runs.flatMap((run) => run.hostCpu));
const connections = (runs: readonly Run[]) => most(runs.flatMap(({ ssh }) => ssh.map((host) => host.connections)));
const sessions = (runs: readonly Run[]) => most(runs.flatMap(({ ssh }) => ssh.map((host) => host.sessions)));

const told = ({ stdout }: Run) => JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as ProviderRun;

/** Pulumi's own provider process among those of a run. */
export const providerMB = (runs: readonly Taken[]) =>
  median(
    runs.map(({ processes }) =>
      most(processes.filter(({ command }) => command.includes("dynamic-provider")).map(({ peakMB }) => peakMB)),
    ),
  );

export function providerRows(hosts: number, runs: Runs): Row[] {
  const alone = runs["kubexm"] ?? { first: [], again: [] };
  const pulumi = runs["pulumi"] ?? { first: [], again: [] };
  const split = runs["split"] ?? { first: [], again: [] };
  const compare = (
    metric: string,
    unit: string,
    ours: readonly Run[],
    phase: Phase,
    figure: (runs: readonly Run[]) => number,
    targets: readonly Target[] = [],
  ) => rowsOf(`${metric}, ${hosts} hosts`, unit, figure(ours), peersOf(runs, phase, figure), targets);
  const seconds = middle("seconds");
  const share = seconds(pulumi.again) - seconds(alone.again);
  return [
    ...compare("no-op, provider alone", "s", alone.again, "again", seconds, [
      { most: 1.3, of: "floor" },
      { least: 50, fasterThan: "ansible" },
      { least: 2.5, fasterThan: "pyinfra" },
    ]),
    ...rowsOf(
      `no-op, provider alone: of it node and modules, ${hosts} hosts`,
      "s",
      median(alone.again.map((run) => told(run).loadedMs / 1000)),
    ),
    ...compare("no-op through Pulumi (up --refresh)", "s", pulumi.again, "again", seconds, [
      { most: hosts >= 80 ? 0.7 : 1, of: "pyinfra" },
    ]),
    ...rowsOf(`no-op through Pulumi: Pulumi's own share, ${hosts} hosts`, "s", share),
    ...compare("no-op through Pulumi, the role split in four components", "s", split.again, "again", seconds),
    ...compare("first run, provider alone", "s", alone.first, "first", seconds, [
      { most: 1.4, of: "script" },
      { least: 1, fasterThan: "pyinfra" },
      { least: 1, fasterThan: "mitogen" },
      { least: 1, fasterThan: "ansible" },
    ]),
    ...compare("first run through Pulumi (up)", "s", pulumi.first, "first", seconds, [
      { least: 1, fasterThan: "pyinfra" },
    ]),
    ...compare("first run through Pulumi, the role split in four components", "s", split.first, "first", seconds),
    ...compare("no-op: CPU of the tool, provider alone", "s", alone.again, "again", middle("cpuSeconds")),
    ...compare("no-op: CPU of the tool, through Pulumi", "s", pulumi.again, "again", middle("cpuSeconds")),
    ...compare("first run: CPU of the tool, provider alone", "s", alone.first, "first", middle("cpuSeconds")),
    ...compare("no-op: CPU on a host", "s", alone.again, "again", hostCpu, [{ most: 0.1 }]),
    ...compare("first run: CPU on a host", "s", alone.first, "first", hostCpu),
    ...compare("first run: peak memory, provider alone", "MB", alone.first, "first", middle("peakMB"), [{ most: 150 }]),
    ...compare("no-op: peak memory, provider alone", "MB", alone.again, "again", middle("peakMB"), [{ most: 150 }]),
    ...compare("first run: peak memory, through Pulumi", "MB", pulumi.first, "first", middle("peakMB")),
    ...rowsOf(
      `provider process under Pulumi: peak memory, first run, ${hosts} hosts`,
      "MB",
      providerMB(pulumi.first),
      {},
      [{ most: 150 }],
    ),
    ...compare("no-op: TCP connections of a host", "", alone.again, "again", connections, [{ most: 1 }, { least: 1 }]),
    ...compare("first run: TCP connections of a host", "", alone.first, "first", connections, [
      { most: 1 },
      { least: 1 },
    ]),
    ...rowsOf(`up --refresh: TCP connections of a host, ${hosts} hosts`, "", connections(pulumi.again), {}, [
      { most: 1 },
      { least: 1 },
    ]),
    ...compare("no-op: SSH sessions of a host", "", alone.again, "again", sessions, [{ most: 3 }]),
    ...rowsOf(`up --refresh: SSH sessions of a host, ${hosts} hosts`, "", sessions(pulumi.again), {}, [{ most: 3 }]),
    ...rowsOf(
      `up --refresh, the role split in four: SSH sessions of a host, ${hosts} hosts`,
      "",
      sessions(split.again),
    ),
    ...compare("first run: SSH sessions of a host", "", alone.first, "first", sessions),
  ];
}
