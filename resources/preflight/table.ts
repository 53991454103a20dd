import type { Result, Row } from "./checks";
import { CHECKS } from "./names";

const RANK: Readonly<Record<Result, number>> = { pass: 0, warn: 1, fail: 2 };
const ORDER: readonly string[] = ["connect", ...CHECKS];

/** One row for each check of a host: the gravest, where a host by itself and beside the others gave one each. */
export function gravest(rows: readonly Row[]): Row[] {
  const best = new Map<string, Row>();
  for (const row of rows) {
    const key = `${row.host}\0${row.check}`;
    const other = best.get(key);
    if (other === undefined || RANK[row.result] > RANK[other.result]) best.set(key, row);
  }
  return [...best.values()];
}

/** By host as they come, then by check. */
export function inOrder(rows: readonly Row[]): Row[] {
  const hosts = [...new Set(rows.map(({ host }) => host))];
  const place = new Map(hosts.map((host, i) => [host, i]));
  const at = (row: Row) => place.get(row.host) ?? 0;
  return rows.toSorted((a, b) => at(a) - at(b) || ORDER.indexOf(a.check) - ORDER.indexOf(b.check));
}

const WORD: Readonly<Record<Result, string>> = { pass: "pass", warn: "warn", fail: "FAIL" };
const NOTHING = /^nothing(: |, | for |$)/;

const MOST_NAMED = 3;

/** Rows that say the same of several hosts, as one. */
function grouped(rows: readonly Row[]): { row: Row; hosts: string[] }[] {
  const groups = new Map<string, { row: Row; hosts: string[] }>();
  for (const row of rows) {
    const { host, check, result, found, fix = "" } = row;
    const key = [check, result, found, fix].join("\0");
    const group = groups.get(key) ?? { row, hosts: [] };
    groups.set(key, { row, hosts: [...group.hosts, host] });
  }
  return [...groups.values()];
}

/** What a person reads: failures first, each with what to do under it. */
export function tableText(rows: readonly Row[]): string {
  const groups = grouped(rows.toSorted((a, b) => RANK[b.result] - RANK[a.result])).map(({ row, hosts }) => ({
    row,
    hosts,
    label: hosts.length > MOST_NAMED ? `${hosts.length} hosts` : hosts.join(", "),
  }));
  const width = (of: (group: (typeof groups)[number]) => string) =>
    Math.max(0, ...groups.map((group) => of(group).length));
  const [label, check] = [width((group) => group.label), width(({ row }) => row.check)];
  const under = (text: string) => `${" ".repeat(label + check + 10)}${text}`;
  return groups
    .flatMap(({ row, hosts, label: name }) => {
      const { fix = "" } = row;
      return [
        [name.padEnd(label), row.check.padEnd(check), WORD[row.result], row.found].join("  "),
        ...(fix === "" ? [] : [under(`${NOTHING.test(fix) ? "to do" : "fix"}: ${fix}`)]),
        ...(hosts.length > MOST_NAMED ? [under(`on ${hosts.join(", ")}`)] : []),
      ];
    })
    .join("\n");
}

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

export interface Counts {
  readonly hosts: number;
  readonly pass: number;
  readonly warn: number;
  readonly fail: number;
}

export const countsText = ({ hosts, pass, warn, fail }: Counts) =>
  `${plural(hosts, "host")}: ${plural(fail, "failure")}, ${plural(warn, "warning")}, ${pass} passed`;

export const count = (rows: readonly Row[], result: Result) => rows.filter((row) => row.result === result).length;
