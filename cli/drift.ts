import type { DriftReport } from "../resources/provider.js";
import { fileFlags } from "./file-flags.js";
import { storedOf } from "./stored.js";

const HELP = `kubexm drift [-f cluster.yaml] [--json]: look at every host for what differs from the last up; nothing is changed

  -f, --file VALUE           the cluster file (cluster.yaml)
      --json                 print what was found as JSON

Lines of a file that differ stand under it: - found, + wanted. Not those of secrets, nor what only some users of its host may read.

exit code: 0 nothing differs, 2 something does, 1 a host could not be looked at (the others are still told), or nothing could`;

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What a person reads. */
export function driftText({ drift, unseen, hosts }: DriftReport, file: string): string {
  const width = (of: (row: DriftReport["drift"][number]) => string) =>
    Math.max(0, ...drift.map((row) => of(row).length));
  const [host, component, step] = [width((row) => row.host), width((row) => row.component), width((row) => row.step)];
  return [
    ...drift.flatMap((row) => [
      [
        row.host.padEnd(host),
        row.component.padEnd(component),
        row.step.padEnd(step),
        `want ${row.want}, found ${row.found}`,
      ].join("  "),
      ...(row.lines ?? []).map((line) => `    ${line}`),
    ]),
    ...unseen.map(({ host: name, why }) => `${name}  could not be looked at: ${why}`),
    `${plural(drift.length, "difference")} on ${plural(hosts - unseen.length, "host")}${unseen.length > 0 ? `, ${plural(unseen.length, "host")} not seen` : ""}`,
    ...(hosts === 0 ? [`nothing is made on any host yet: run kubexm up -f ${file}`] : []),
    ...(drift.length > 0 ? [`kubexm up --refresh -f ${file} puts it right`] : []),
  ].join("\n");
}

/** A host that was not seen may differ as well: that comes before what the others show. */
export const driftCode = ({ drift, unseen }: Pick<DriftReport, "drift" | "unseen">): number =>
  unseen.length > 0 ? 1 : drift.length > 0 ? 2 : 0;

export async function driftCommand(argv: readonly string[]): Promise<number> {
  // 2 is drift: who asks from cron must not take a slip of the pen for it.
  const { file, json, help } = fileFlags("drift", argv, { misused: 1 });
  if (help) {
    console.log(HELP);
    return 0;
  }
  const storing = storedOf(file, { unasked: ["revealed"] });
  // The components load while Pulumi reads the state, where it is needed for that.
  const [{ resources }, { driftOf }] = await Promise.all([storing, import("../resources/provider.js")]);
  const report = await driftOf(resources);
  console.log(json ? JSON.stringify(report, null, 2) : driftText(report, file));
  return driftCode(report);
}
