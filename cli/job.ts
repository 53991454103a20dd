import { RunError } from "@pulumi/pulumi";
import { Cluster } from "../index.js";
import type { ClusterFile } from "../resources/config/index.js";
import { CLUSTER_DIR, homeOf } from "./home.js";
import type { Job } from "./pulumi.js";
import { clusterOf } from "./stack-config.js";

/** What a person has to mend is told without the stack of the program. */
function build({ name, spec }: ClusterFile): void {
  try {
    new Cluster(name, spec);
  } catch (error) {
    throw error instanceof Error && /^(User|Argument)Error$/.test(error.name) ? new RunError(error.message) : error;
  }
}

/** The cluster of a file, checked before Pulumi is started. `tell`: what is worth a thought in it, once. */
export async function clusterJob(file: string, tell: (line: string) => void = () => undefined): Promise<Job> {
  const { warnings, ...cluster } = await clusterOf(file);
  warnings.forEach(tell);
  process.env[CLUSTER_DIR] = homeOf(cluster.name, file).dir;
  return { cluster: cluster.name, program: () => Promise.resolve(build(cluster)) };
}
