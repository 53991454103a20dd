export { Host, type HostArgs } from "./provider/host";
export { Cluster, type ClusterArgs } from "./resources/cluster";
export * from "./resources/index";
export { loadCluster } from "./resources/modules/cluster-file";
