import { clusterName, readCluster } from "../resources/config/index.js";
import { driftOf, type DriftReport, type Stored } from "../resources/provider.js";
import { UserError } from "../toolchain/errors.js";
import { ensurePulumi } from "../toolchain/pulumi.js";
import { engine } from "./engine.js";
import { homeOf, prepare } from "./home.js";
import { fileFlags } from "./file-flags.js";

const HELP = `kubexm drift [-f cluster.yaml] [--json]: look at every host for what differs from the last up; nothing is changed

  -f, --file VALUE           the cluster file (cluster.yaml)
      --json                 print what was found as JSON

exit code: 0 nothing differs, 2 something does, 1 a host could not be looked at (the others are still told)`;

/** The resources of the stack with their secrets in clear: they hold what is needed to reach the hosts. */
async function stored(file: string): Promise<Stored[]> {
  const name = clusterName(readCluster(file));
  if (name === undefined) throw new UserError(`${file}: metadata.name is missing; write the cluster's name there`);
  const { bin, env, version } = await ensurePulumi();
  const home = homeOf(name, file);
  const backend = prepare(home, env);
  const stack = process.env["PULUMI_STACK"] ?? name;
  const pulumi = engine(bin, version, () => true);
  const { stdout } = await pulumi.run(["stack", "export", "--show-secrets", "--stack", stack], home.work, backend.env);
  const { deployment } = JSON.parse(stdout) as { deployment: { resources?: Stored[] } };
  return (deployment.resources ?? []).map(({ type, outputs }) => ({ type, outputs: plain(outputs) }));
}

const SECRET_KEY = "4dabf18193072939515e22adb298388d";

/** An exported secret is wrapped; its value is JSON text. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap);
  if (typeof value !== "object" || value === null) return value;
  if (SECRET_KEY in value && "plaintext" in value) return JSON.parse(String(value.plaintext)) as unknown;
  return plain(value as Record<string, unknown>);
}

const plain = (tree: Readonly<Record<string, unknown>> = {}) =>
  Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, unwrap(value)]));

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

function text({ drift, unseen, hosts }: DriftReport): string {
  const width = (of: (row: DriftReport["drift"][number]) => string) =>
    Math.max(0, ...drift.map((row) => of(row).length));
  const [host, component, step] = [width((row) => row.host), width((row) => row.component), width((row) => row.step)];
  return [
    ...drift.map((row) =>
      [
        row.host.padEnd(host),
        row.component.padEnd(component),
        row.step.padEnd(step),
        `want ${row.want}, found ${row.found}`,
      ].join("  "),
    ),
    ...unseen.map(({ host: name, why }) => `${name}  could not be looked at: ${why}`),
    `${plural(drift.length, "difference")} on ${plural(hosts, "host")}${unseen.length > 0 ? `, ${plural(unseen.length, "host")} not seen` : ""}`,
  ].join("\n");
}

export async function driftCommand(argv: readonly string[]): Promise<number> {
  const { file, json, help } = fileFlags("drift", argv);
  if (help) {
    console.log(HELP);
    return 0;
  }
  const report = await driftOf(await stored(file));
  console.log(json ? JSON.stringify(report, null, 2) : text(report));
  if (report.unseen.length > 0) return 1;
  return report.drift.length > 0 ? 2 : 0;
}
