import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../toolchain/process.js";

type Env = Record<string, string | undefined>;

/** A project whose stack is kept elsewhere. */
export interface Project {
  /** Where Pulumi.yaml and the program are. */
  folder: string;
  stack: string;
  /** A folder of the test's own. */
  place: string;
  env: Env;
}

/**
 * Makes a stack with these values, and gives the flags that lead every run in the project's folder to it. Pulumi keeps a
 * stack's settings beside Pulumi.yaml: in a copy of that here, so that a killed test leaves nothing in the clone.
 */
export async function stackOf(
  { folder, stack, place, env }: Project,
  config: Readonly<Record<string, string>>,
): Promise<string[]> {
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  cpSync(join(folder, "Pulumi.yaml"), join(place, "Pulumi.yaml"));
  const pulumi = (...argv: string[]) => run("pulumi", [...argv, "--non-interactive"], { cwd: place, env });
  await pulumi("stack", "init", stack);
  for (const [key, value] of Object.entries(config))
    await pulumi("config", "set", "--stack", stack, "--path", key, value);
  return ["--stack", stack, "--config-file", join(place, `Pulumi.${stack}.yaml`), "--non-interactive"];
}
