import type { Taken } from "../measure.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import { type Shape, titleOf } from "../site.js";
import { providerMB } from "./provider-rows.js";

/** A cluster made, or grown. */
export interface Making {
  taken: Taken;
  /** Seconds of all hosts together. */
  hostCpu: number;
  /** Seconds after the start, by what the cluster says itself: to the second. */
  nodesReady: number;
  dnsReady: number;
  /** What came of it. */
  lines: string[];
}

export interface Life {
  up: Making;
  /** Runs with nothing to do. */
  again: Taken[];
  /** A worker more. */
  added?: Making;
}

/** Seconds, by "masters+workers". */
const MOST_SECONDS: Readonly<Record<string, number>> = { "1+1": 60, "3+2": 150 };

export function clusterRows(shape: Shape, lives: Readonly<Record<"ours" | "floor", Life[]>>): Row[] {
  const size = titleOf(shape);
  const compare = (
    metric: string,
    unit: string,
    of: (life: Life) => Making | undefined,
    figure: (making: Making) => number,
    targets: readonly Target[] = [],
  ): Row[] => {
    const middle = (all: readonly Life[]) => median(all.flatMap((life) => of(life) ?? []).map(figure));
    return rowsOf(`${size}: ${metric}`, unit, middle(lives.ours), { floor: middle(lives.floor) }, targets);
  };
  const up = ({ up }: Life) => up;
  const added = ({ added }: Life) => added;
  const seconds = ({ taken }: Making) => taken.seconds;
  const most = MOST_SECONDS[size];
  const [made, noops] = [lives.ours.map(({ up }) => up.taken), lives.ours.flatMap(({ again }) => again)];
  const alone = (metric: string, unit: string, ours: number, targets: readonly Target[] = []) =>
    rowsOf(`${size}: ${metric}`, unit, ours, {}, targets);
  return [
    ...compare("up, to all nodes ready", "s", up, seconds, [
      ...(most === undefined ? [] : [{ most }]),
      { most: 1.3, of: "floor" },
    ]),
    ...compare("up: the last node says it is ready after", "s", up, ({ nodesReady }) => nodesReady),
    ...compare("up: CoreDNS says it is ready after", "s", up, ({ dnsReady }) => dnsReady),
    ...compare("up: CPU of the tool", "s", up, ({ taken }) => taken.cpuSeconds),
    ...compare("up: CPU of all hosts", "s", up, ({ hostCpu }) => hostCpu),
    ...compare("up: peak memory of the tool", "MB", up, ({ taken }) => taken.peakMB),
    ...alone("up: peak memory of the provider", "MB", providerMB(made), [{ most: 200 }]),
    ...(lives.ours.some(({ added }) => added)
      ? compare("a worker more, to all nodes ready", "s", added, seconds, [{ most: 25 }])
      : []),
    ...(noops.length > 0
      ? [
          ...alone("up --refresh, nothing to do", "s", median(noops.map((run) => run.seconds)), [{ most: 12 }]),
          ...alone("up --refresh: CPU of the tool", "s", median(noops.map((run) => run.cpuSeconds))),
          ...alone("up --refresh: peak memory of the tool", "MB", median(noops.map((run) => run.peakMB))),
          ...alone("up --refresh: peak memory of the provider", "MB", providerMB(noops)),
        ]
      : []),
  ];
}
