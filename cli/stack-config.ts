import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import {
  ConfigError,
  clusterName,
  judgeCluster,
  problemText,
  readCluster,
  type ClusterFile,
  type Sources,
} from "../resources/config/index.js";
import { UserError } from "../toolchain/errors.js";
import { ensurePulumi } from "../toolchain/pulumi.js";
import { engine } from "./engine.js";
import { PROJECT, homeOf, prepare } from "./home.js";

const PLACE = "${config:";

/** What it takes to ask Pulumi about the stack of a cluster outside a run. */
async function place(cluster: string, file: string) {
  const { bin, env, version } = await ensurePulumi();
  const home = homeOf(cluster, file);
  const backend = prepare(home, env);
  const project = join(home.work, "Pulumi.yaml");
  if (!existsSync(project)) writeFileSync(project, stringify(PROJECT));
  return { bin, home, backend, version, stack: process.env["PULUMI_STACK"] ?? cluster };
}

interface ConfigValue {
  value: string;
  secret: boolean;
}

/** The values of the stack's configuration, by their names within kubexm's project. */
export function valuesOf(listed: Readonly<Record<string, ConfigValue>>): Pick<Sources, "config" | "secrets"> {
  const own = `${PROJECT.name}:`;
  const values = Object.entries(listed).flatMap(([key, value]) =>
    [key, ...(key.startsWith(own) ? [key.slice(own.length)] : [])].map((name) => ({ name, ...value })),
  );
  return {
    config: Object.fromEntries(values.map(({ name, value }) => [name, value])),
    secrets: values.filter(({ secret }) => secret).map(({ name }) => name),
  };
}

async function stackValues(cluster: string, file: string): Promise<Pick<Sources, "config" | "secrets">> {
  const { bin, home, backend, version, stack } = await place(cluster, file);
  if (!existsSync(join(home.work, `Pulumi.${stack}.yaml`))) return { config: {} };
  const pulumi = engine(bin, version, () => true);
  const { stdout } = await pulumi.run(["config", "--json", "--show-secrets", "--stack", stack], home.work, backend.env);
  return valuesOf(JSON.parse(stdout) as Record<string, ConfigValue>);
}

export interface Told extends ClusterFile {
  /** Warnings about the file, a line each. */
  warnings: string[];
}

/** The cluster of a file, `${env:…}` and `${config:…}` filled in. Pulumi is asked only where the file needs it. */
export async function clusterOf(file: string): Promise<Told> {
  const text = readCluster(file);
  const name = text.includes(PLACE) ? clusterName(text) : undefined;
  const values = name === undefined ? {} : await stackValues(name, file);
  const { cluster, problems } = judgeCluster(text, { env: process.env, ...values });
  const of = (wanted: "error" | "warning") => problems.filter(({ severity }) => severity === wanted);
  if (cluster === undefined) throw new ConfigError(file, of("error"));
  return { ...cluster, warnings: of("warning").map((problem) => problemText(file, problem)) };
}

const HELP = `kubexm config [-f cluster.yaml] ARGUMENTS: values for \${config:NAME} in a cluster file, by pulumi config

  kubexm config set --secret NAME   asks for the value, or reads it from its input, and keeps it encrypted
  kubexm config set NAME VALUE      a value that anybody may see
  kubexm config                     what is set
  kubexm config rm NAME             forget it`;

/** `kubexm config`: pulumi config, in the right place and with the right passphrase. */
export async function configCommand(argv: readonly string[]): Promise<number> {
  const named = argv[0] === "-f" || argv[0] === "--file";
  const [file, rest] = named ? [argv[1] ?? "", argv.slice(2)] : ["cluster.yaml", argv];
  if (rest.includes("--help") || rest.includes("-h")) {
    console.log(HELP);
    return 0;
  }
  const name = clusterName(readCluster(file));
  if (name === undefined) throw new UserError(`${file}: metadata.name is missing; write the cluster's name there`);
  const { bin, home, backend, version, stack } = await place(name, file);
  await engine(bin, version, () => false).run(["stack", "select", "--stack", stack], home.work, backend.env);
  // A secret comes from the terminal or a pipe, and stands in no list of processes.
  const child = spawn(join(bin, "pulumi"), ["config", ...rest, "--stack", stack], {
    cwd: home.work,
    env: { ...process.env, ...backend.env },
    stdio: "inherit",
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0 ? 0 : 1;
}
