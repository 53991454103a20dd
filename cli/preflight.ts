import { ConfigError, UnreadableError } from "../resources/config/index.js";
import { countsText, preflightOf, tableText, type PreflightReport } from "../resources/provider.js";
import { fileFlags } from "./file-flags.js";
import { clusterOf } from "./stack-config.js";
import { unusableJson } from "./validate.js";

const HELP = `kubexm preflight [-f cluster.yaml] [--json]: check every host for what would keep it from becoming part of the cluster; nothing is changed

  -f, --file VALUE           the cluster file (cluster.yaml)
      --json                 print every check of every host as JSON

exit code: 0 nothing stands in the way (there may be warnings), 1 something does, 2 the file cannot be read or has problems`;

function text({ rows, counts }: PreflightReport): string {
  const told = rows.filter(({ result }) => result !== "pass");
  return [...(told.length === 0 ? [] : [tableText(told)]), countsText(counts)].join("\n");
}

/** `kubexm preflight`: the checks that `up` makes first, without a state. */
export async function preflightCommand(argv: readonly string[]): Promise<number> {
  const { file, json, help } = fileFlags("preflight", argv);
  if (help) {
    console.log(HELP);
    return 0;
  }
  let cluster;
  try {
    cluster = await clusterOf(file);
  } catch (error) {
    if (!(error instanceof UnreadableError || error instanceof ConfigError)) throw error;
    if (json) console.log(unusableJson(file, error));
    else console.error(error.message);
    return 2;
  }
  const report = await preflightOf(cluster.name, cluster.spec);
  console.log(json ? JSON.stringify(report, null, 2) : text(report));
  return report.counts.fail > 0 ? 1 : 0;
}
