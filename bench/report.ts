import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

/** What a figure is held against: a number, or a number times what a peer needs. */
export interface Target {
  most?: number;
  least?: number;
  /** A peer: our figure divided by its figure counts. */
  of?: string;
  /** A peer: its figure divided by ours counts. */
  fasterThan?: string;
}

export interface Row {
  metric: string;
  unit: string;
  ours: number | null;
  peers: Record<string, number>;
  ratio: number | null;
  target: string | null;
  holds: boolean | null;
}

export interface Report {
  group: string;
  date: string;
  machine: { cores: number; cpu: string; memoryGiB: number; loadBefore: number };
  versions: Record<string, string>;
  rows: Row[];
}

const rounded = (value: number) => Number(value.toPrecision(value >= 1000 ? 4 : 3));

export function targetText({ most, least, of, fasterThan }: Target): string {
  const bound = most === undefined ? `>= ${least ?? "?"}` : `<= ${most}`;
  if (of !== undefined) return `${bound} x ${of}`;
  return fasterThan === undefined ? bound : `${bound} x faster than ${fasterThan}`;
}

function judge(ours: number, peers: Readonly<Record<string, number>>, { most, least, of, fasterThan }: Target) {
  const name = of ?? fasterThan;
  const peer = name === undefined ? undefined : peers[name];
  if (name !== undefined && peer === undefined) return undefined;
  const value = peer === undefined ? ours : of === undefined ? peer / ours : ours / peer;
  return {
    ratio: peer === undefined ? null : rounded(value),
    holds: value <= (most ?? Infinity) && value >= (least ?? -Infinity),
  };
}

/** The rows of one figure: one for each target, the first with the peers' figures. A target whose peer did not run is left out. */
export function rowsOf(
  metric: string,
  unit: string,
  ours: number | null,
  peers: Readonly<Record<string, number>> = {},
  targets: readonly Target[] = [],
): Row[] {
  const shown = Object.fromEntries(Object.entries(peers).map(([name, value]) => [name, rounded(value)]));
  const plain = { metric, unit, ours: ours === null ? null : rounded(ours) };
  if (ours === null) return [{ ...plain, peers: shown, ratio: null, target: null, holds: null }];
  const judged = targets.flatMap((target) => {
    const judgement = judge(ours, peers, target);
    return judgement ? [{ ...plain, peers: {}, ...judgement, target: targetText(target) }] : [];
  });
  const [first = { ...plain, ratio: null, target: null, holds: null }, ...others] = judged;
  return [{ ...first, peers: shown }, ...others];
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

const HEADER = ["metric", "unit", "ours", "peers", "ratio", "target", "holds"];

function cells({ metric, unit, ours, peers, ratio, target, holds }: Row): string[] {
  const others = Object.entries(peers).map(([name, value]) => `${name} ${value}`);
  const verdict = holds === null ? "" : holds ? "yes" : "NO";
  return [metric, unit, String(ours ?? ""), others.join(", "), String(ratio ?? ""), target ?? "", verdict];
}

export function table(rows: readonly Row[]): string {
  const all = [HEADER, ...rows.map(cells)];
  const widths = HEADER.map((_, i) => Math.max(...all.map((line) => line[i]?.length ?? 0)));
  return all
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function machine(loadBefore: number): Report["machine"] {
  const all = cpus();
  return {
    cores: all.length,
    cpu: all[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    loadBefore: rounded(loadBefore),
  };
}

export function writeReport(folder: string, report: Report): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${report.group}.json`);
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
  return path;
}
