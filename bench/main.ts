import { loadavg } from "node:os";
import { join } from "node:path";
import { codeOf, exitWith } from "../cli/exit.js";
import { GROUPS, type Measured, type Options, benchArguments } from "./groups.js";
import { type Row, machine, table, writeReport } from "./report.js";
import { root } from "./root.js";

function tell(group: string, rows: readonly Row[], path: string): void {
  const failed = rows.filter(({ holds }) => holds === false).length;
  const judged = rows.filter(({ holds }) => holds !== null).length;
  console.log(`\n${table(rows)}\n\n${group}: ${judged - failed} of ${judged} targets hold; written to ${path}`);
}

/** Every row so far is written as it comes, so that an interrupted bench has not been for nothing. */
async function runGroup(name: string, options: Options): Promise<void> {
  const [loadBefore = 0] = loadavg();
  const date = new Date().toISOString();
  const save = ({ versions, rows }: Measured) =>
    writeReport(join(root, "bench", "results"), { group: name, date, machine: machine(loadBefore), versions, rows });
  if (loadBefore > 0.5)
    console.error(
      `${name}: the machine is busy (load ${loadBefore.toFixed(1)}): the figures will be worse than they are`,
    );
  const measured = await GROUPS[name]?.(options, save);
  if (measured) tell(name, measured.rows, save(measured));
}

async function bench(argv: readonly string[]): Promise<number> {
  const { groups, options } = benchArguments(argv);
  for (const group of groups) await runGroup(group, options);
  return 0;
}

void codeOf(() => bench(process.argv.slice(2))).then(exitWith);
