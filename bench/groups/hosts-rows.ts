import type { SshCount } from "../hosts.js";
import type { Taken } from "../measure.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import { providerMB } from "./provider-rows.js";

export type Phase = "preflight" | "first" | "again" | "drift" | "floor" | "idle" | "grown";

export interface HostsRuns {
  ours: Record<Phase, Taken[]>;
  peers: Readonly<Record<string, Record<"first" | "again", Taken[]>>>;
}

type Figure = "seconds" | "cpuSeconds" | "peakMB";

/** A target that was set for many hosts says nothing of fewer. */
const from = (least: number, hosts: number, target: Target): Target[] => (hosts >= least ? [target] : []);

/** `grown` tells the sessions when a host came to the others: it is the last, and the first serves time. */
export function hostsRows(hosts: number, { ours, peers }: HostsRuns, grown: readonly SshCount[]): Row[] {
  const middle = (runs: readonly Taken[], figure: Figure) => median(runs.map((run) => run[figure]));
  const seconds = (phase: Phase) => middle(ours[phase], "seconds");
  const theirs = (phase: "first" | "again", figure: Figure) =>
    Object.fromEntries(Object.entries(peers).map(([name, runs]) => [name, middle(runs[phase], figure)]));
  const rows = (what: string, unit: string, value: number, others = {}, targets: readonly Target[] = []) =>
    rowsOf(`${what}, ${hosts} hosts`, unit, value, others, targets);
  const beside = (what: string, unit: string, phase: "first" | "again", figure: Figure) =>
    rows(what, unit, middle(ours[phase], figure), theirs(phase, figure));
  const floor = { floor: seconds("floor") };
  const noops = { "up --refresh": seconds("again"), up: seconds("idle") };
  const sessions = Math.max(0, ...grown.slice(1, -1).map((host) => host.sessions));
  return [
    ...rows("kubexm preflight for Kubernetes", "s", seconds("preflight"), {}, from(80, hosts, { most: 5 })),
    ...rows("first up of host readiness (packages are there)", "s", seconds("first"), theirs("first", "seconds"), [
      { least: 1, fasterThan: "pyinfra" },
      { least: 1, fasterThan: "mitogen" },
    ]),
    ...rows("up --refresh, nothing to do", "s", seconds("again"), { ...floor, ...theirs("again", "seconds") }, [
      { least: 1, fasterThan: "mitogen" },
    ]),
    ...rows("up --refresh: Pulumi's own share", "s", seconds("again") - seconds("drift")),
    ...rows("kubexm drift", "s", seconds("drift"), floor, [{ most: 1.5, of: "floor" }]),
    ...beside("first up: CPU of the tool", "s", "first", "cpuSeconds"),
    ...beside("up --refresh: CPU of the tool", "s", "again", "cpuSeconds"),
    ...beside("first up: peak memory of the tool", "MB", "first", "peakMB"),
    ...rows("first up: peak memory of the provider", "MB", providerMB(ours.first)),
    // An `up` that asks no host is no measure: to log in to each of the others takes longer than a fifth of it.
    ...rows("one host more", "s", seconds("grown"), noops, from(40, hosts, { most: 1.2, of: "up --refresh" })),
    ...rows("one host more: sessions on each of the others", "", sessions, {}, [{ most: 1 }]),
    ...rows("one host more: sessions on the first, which serves time", "", grown[0]?.sessions ?? 0),
  ];
}
