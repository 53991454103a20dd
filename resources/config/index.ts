export { checkSpec, parseSpec } from "./check";
export { addressesOf, expandRange, groupNames, hostsOf, hostsRecords, hostsWithRoles } from "./hosts";
export type { Addresses, HostRoles, HostsRecord } from "./hosts";
export { judgeCluster, loadCluster, parseCluster, readCluster } from "./load";
export type { ClusterFile, Judged } from "./load";
export { ConfigError, UnreadableError, problemText, type Problem } from "./problems";
export { clusterFile, clusterSpec, sections } from "./schema";
export type { ClusterHost, ClusterInput, ClusterSpec, Role } from "./schema";
export type { Sources } from "./substitute";
