import { RunError, unsecret } from "@pulumi/pulumi";
import { Cluster } from "../index.js";
import { makesKubernetes, refusal, type ClusterFile } from "../resources/config/index.js";
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
    if (makesKubernetes(spec)) await tryFiles(spec);
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

interface Wish {
  /** What is worth a thought in the file, once. */
  tell?: (line: string) => void;
  /** Hosts are to be changed, so that what cannot be made is refused before Pulumi is started. */
  makes?: boolean;
}

/** The cluster of a file, checked before Pulumi is started. */
export async function clusterJob(file: string, { tell = () => undefined, makes = false }: Wish = {}): Promise<Job> {
  const { warnings, notBuilt, ...cluster } = await clusterOf(file);
  if (makes && notBuilt.length > 0) throw refusal(notBuilt);
  warnings.forEach(tell);
  const home = homeOf(cluster.name, file);
  process.env[CLUSTER_DIR] = home.dir;
  const refused = notBuilt.length > 0 && { refused: refusal(notBuilt) };
  return { cluster: cluster.name, program: () => build(cluster, home), ...refused };
}

/** For what goes by the state alone: a file that is no longer right must not keep anybody from giving hosts back. */
export async function stateJob(file: string): Promise<Job> {
  const cluster = await nameIn(file);
  process.env[CLUSTER_DIR] = homeOf(cluster, file).dir;
  return { cluster, program: () => Promise.resolve() };
}
