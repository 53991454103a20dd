import { RunError } from "@pulumi/pulumi";
import { Cluster, loadCluster } from "../index.js";
import { CLUSTER_DIR, homeOf } from "./home.js";
import type { Job } from "./pulumi.js";

/** What a person has to mend is told without the stack of the program. */
function build(name: string, spec: ReturnType<typeof loadCluster>["spec"]): void {
  try {
    new Cluster(name, spec);
  } catch (error) {
    throw error instanceof Error && error.name === "UserError" ? new RunError(error.message) : error;
  }
}

/** The cluster of a file, checked before Pulumi is started. */
export function clusterJob(file: string): Job {
  const { name, spec } = loadCluster(file);
  process.env[CLUSTER_DIR] = homeOf(name, file).dir;
  return { cluster: name, program: () => Promise.resolve(build(name, spec)) };
}
