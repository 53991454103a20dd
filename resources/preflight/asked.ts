import { z } from "zod";
import { ROLES } from "../config/schema-hosts";

const reach = z.object({
  host: z.string().describe("Its name"),
  address: z.string().describe("Its address as this host sees it"),
  ports: z.array(z.int()).describe("TCP ports"),
  answers: z.boolean().default(false).describe("Something listens there already"),
});

/** What a host will have to be, as far as checks depend on it. */
export const asked = z.object({
  roles: z.array(z.enum(ROLES)).default([]).describe("Its roles"),
  version: z.string().describe("Version of Kubernetes"),
  cluster: z.boolean().describe("Kubernetes comes onto it"),
  kubeadm: z.boolean().describe("kubeadm sets it up, and checks for itself"),
  runtime: z.string().describe("The container runtime"),
  existingRuntime: z
    .enum(["refuse", "adopt", "replace"])
    .describe("What becomes of a containerd that is there already"),
  runtimeVersion: z
    .string()
    .optional()
    .describe("The version of it that settings are written for, where it is adopted"),
  leftovers: z.enum(["refuse", "clean"]).default("refuse").describe("What becomes of remains of another cluster"),
  cgroupV1: z.boolean().describe("kubelet was told to run with cgroup version 1"),
  nftables: z.boolean().describe("kube-proxy uses nftables"),
  modules: z.array(z.string()).describe("Kernel modules it needs"),
  ports: z.array(z.string()).describe("Ports that something of the cluster will listen on: 6443/tcp"),
  disk: z.record(z.string(), z.number()).describe("GiB that must be free, by path"),
  etcdDir: z.string().optional().describe("Folder of etcd's data, where one is set up"),
  etcdDirShared: z.boolean().default(false).describe("That folder may hold other things, too"),
  reach: z.array(reach).default([]).describe("What it must reach"),
  arch: z.string().optional().describe("Processor architecture"),
  zone: z.string().optional().describe("Time zone"),
  moreDns: z.boolean().describe("DNS servers are added to those it has"),
  ipv6: z.boolean().default(false).describe("Pods have IPv6, and the host forwards their packets"),
  selinux: z.string().describe("Wanted mode of SELinux"),
  firewall: z.enum(["open", "disable"]).describe("What becomes of a running firewall"),
  place: z.string().optional().describe("Whose the host's place in a cluster is, if it has one already"),
  ignore: z.array(z.string()).default([]).describe("Checks that may fail"),
});

export type Asked = z.output<typeof asked>;
export type Reach = z.output<typeof reach>;
