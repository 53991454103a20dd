import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { plainName, readCluster } from "../resources/config/read.js";
import { UserError } from "../toolchain/errors.js";
import { ensurePulumi } from "../toolchain/pulumi.js";
import { type Backend, PROJECT, homeOf, prepare, stackOf } from "./home.js";

/** The cluster's name, whatever else may be wrong with the file. */
export async function nameIn(file: string): Promise<string> {
  const text = readCluster(file);
  const name = plainName(text) ?? (await import("../resources/config/index.js")).clusterName(text);
  if (name === undefined) throw new UserError(`${file}: metadata.name is missing; write the cluster's name there`);
  return name;
}

/** Pulumi, and all of the environment for it. To fetch or build it can take minutes: what can fail before, comes before. */
export async function withPulumi(backend: Backend) {
  const { bin, env, version } = await ensurePulumi();
  return { bin, version, backend: { ...backend, env: { ...env, ...backend.env } } };
}

/** What it takes to ask Pulumi about the stack of a cluster outside a run. */
export async function place(cluster: string, file: string) {
  const home = homeOf(cluster, file);
  const { bin, version, backend } = await withPulumi(prepare(home));
  const project = join(home.work, "Pulumi.yaml");
  // Empty: the disk was full when a run made it anew.
  if (!statSync(project, { throwIfNoEntry: false })?.size) writeFileSync(project, stringify(PROJECT));
  return { bin, home, backend, version, stack: stackOf(cluster) };
}
