import { RunError, unsecret } from "@pulumi/pulumi";
import { Cluster } from "../index.js";
import type { ClusterFile } from "../resources/config/index.js";
import { tryFiles } from "../resources/modules/files.js";
import { CLUSTER_DIR, type Home, homeOf } from "./home.js";
import { writeKubeconfig } from "./kubeconfig.js";
import type { Job } from "./pulumi.js";
import { nameIn } from "./stack.js";
import { clusterOf } from "./stack-config.js";

/** What a person has to mend is told without the stack of the program. */
async function build({ name, spec }: ClusterFile, home: Home) {
  try {
    // Pulumi waits for ever for a resource whose argument fails. What is found out here is recorded, and there then.
    if (spec.kubernetes.type !== "none") await tryFiles(spec);
    const { kubeconfig } = new Cluster(name, spec);
    // With --target it may not have been made yet, whatever its type says.
    unsecret(kubeconfig).apply((text: string | undefined) => {
      if (text !== undefined && text !== "") writeKubeconfig(home, text);
    });
    return { kubeconfig };
  } catch (error) {
    throw error instanceof Error && /^(User|Argument)Error$/.test(error.name) ? new RunError(error.message) : error;
  }
}

/** The cluster of a file, checked before Pulumi is started. `tell`: what is worth a thought in it, once. */
export async function clusterJob(file: string, tell: (line: string) => void = () => undefined): Promise<Job> {
  const { warnings, ...cluster } = await clusterOf(file);
  warnings.forEach(tell);
  const home = homeOf(cluster.name, file);
  process.env[CLUSTER_DIR] = home.dir;
  return { cluster: cluster.name, program: () => build(cluster, home) };
}

/** For what goes by the state alone: a file that is no longer right must not keep anybody from giving hosts back. */
export function stateJob(file: string): Job {
  const cluster = nameIn(file);
  process.env[CLUSTER_DIR] = homeOf(cluster, file).dir;
  return { cluster, program: () => Promise.resolve() };
}
