import { CHECKS, type Result, type Row } from "./checks";

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
const NOTHING = /^nothing(: |, |$)/;

/** What a person reads: each row with what to do under it. */
export function tableText(rows: readonly Row[]): string {
  const width = (of: (row: Row) => string) => Math.max(0, ...rows.map((row) => of(row).length));
  const [host, check] = [width((row) => row.host), width((row) => row.check)];
  return rows
    .flatMap((row) => {
      const line = [row.host.padEnd(host), row.check.padEnd(check), WORD[row.result], row.found].join("  ");
      const { fix = "" } = row;
      const label = NOTHING.test(fix) ? "to do" : "fix";
      return fix === "" ? [line] : [line, `${" ".repeat(host + check + 10)}${label}: ${fix}`];
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
