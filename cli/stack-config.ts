import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  clusterName,
  readCluster,
  stackSources,
  tellCluster,
  type StackValues,
  type Told,
} from "../resources/config/index.js";
import { USUAL_FILE } from "../resources/config/read.js";
import { UsageError } from "../toolchain/errors.js";
import { engine } from "./engine.js";
import { PROJECT } from "./home.js";
import { nameIn, place } from "./stack.js";
import { shortName } from "./state-file.js";

const PLACE = "${config:";

interface ConfigValue {
  value: string;
  secret: boolean;
}

/** The values of the stack's configuration. */
export const valuesOf = (listed: Readonly<Record<string, ConfigValue>>): StackValues =>
  stackSources(
    PROJECT.name,
    Object.entries(listed).map(([key, value]) => ({ key, ...value })),
  );

async function stackValues(cluster: string, file: string): Promise<StackValues> {
  const { bin, home, backend, version, stack } = await place(cluster, file);
  if (!existsSync(join(home.work, `Pulumi.${shortName(stack)}.yaml`))) return { config: {} };
  const pulumi = engine(bin, version, () => true);
  const { stdout } = await pulumi.run(["config", "--json", "--show-secrets", "--stack", stack], home.work, backend.env);
  return valuesOf(JSON.parse(stdout) as Record<string, ConfigValue>);
}

/** The cluster of a file, `${env:…}` and `${config:…}` filled in. Pulumi is asked only where the file needs it. */
export async function clusterOf(file: string): Promise<Told> {
  const text = readCluster(file);
  const name = text.includes(PLACE) ? clusterName(text) : undefined;
  const values = name === undefined ? {} : await stackValues(name, file);
  return tellCluster(text, file, { env: process.env, ...values });
}

const HELP = `kubexm config [-f cluster.yaml] ARGUMENTS: values for \${config:NAME} in a cluster file, by pulumi config

  kubexm config set --secret NAME   asks for the value, or reads it from its input, and keeps it encrypted
  kubexm config set NAME VALUE      a value that anybody may see
  kubexm config                     what is set
  kubexm config rm NAME             forget it`;

/** The cluster file, wherever it is named before a `--`; all else is for Pulumi. */
export function fileAndRest(argv: readonly string[]): { file: string; rest: readonly string[] } {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const at = argv.slice(0, end).findIndex((word) => /^(-f|--file(=.*)?)$/.test(word));
  if (at < 0) return { file: USUAL_FILE, rest: argv };
  const [word = "", next] = argv.slice(at);
  const inside = word.startsWith("--file=");
  const file = inside ? word.slice("--file=".length) : next;
  if (file === undefined || file === "") throw new UsageError(`kubexm config: ${word} needs a cluster file after it`);
  return { file, rest: argv.toSpliced(at, inside ? 1 : 2) };
}

/** `kubexm config`: pulumi config, in the right place and with the right passphrase. */
export async function configCommand(argv: readonly string[]): Promise<number> {
  const { file, rest } = fileAndRest(argv);
  if (rest.includes("--help") || rest.includes("-h")) {
    console.log(HELP);
    return 0;
  }
  const [verb, ...words] = rest.filter((word) => !/^-/.test(word));
  // Pulumi would take an empty input for the value, and put it openly in the place of a secret.
  if (verb === "set" && words.length < 2 && !rest.includes("--secret"))
    throw new UsageError("kubexm config set: write --secret before the name, and it is asked for, or a value after it");
  const { bin, home, backend, version, stack } = await place(await nameIn(file), file);
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
