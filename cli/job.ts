import { Cluster } from "../index.js";
import { loadCluster } from "../resources/config/load.js";
import type { Job } from "./pulumi.js";

/** The cluster of a file, checked before Pulumi is started. */
export function clusterJob(file: string): Job {
  const { name, spec } = loadCluster(file);
  return {
    cluster: name,
    program: async () => {
      new Cluster(name, spec);
      return Promise.resolve({});
    },
  };
}
