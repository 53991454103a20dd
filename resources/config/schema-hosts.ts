import { z } from "zod";
import { bastionSpec, hostSpec } from "../../provider/ssh/spec";
import { CHECKS } from "../preflight/names";
import {
  address,
  dnsName,
  hostName,
  ip,
  ips,
  labels,
  localFile,
  no,
  registryName,
  registryUrl,
  taint,
  url,
} from "./leaves";

export const ROLES = ["etcd", "master", "worker", "registry", "loadbalancer"] as const;
export type Role = (typeof ROLES)[number];

const { hostKeyChecking, bastions, knownHostsPath } = hostSpec.shape;

const checks = z.array(z.enum(CHECKS).describe("Name of a preflight check, see docs/preflight.md"));

export const host = z.strictObject({
  ...hostSpec.shape,
  name: hostName.describe("The host's name in the cluster; becomes its hostname"),
  address: address.describe(hostSpec.shape.address.description ?? ""),
  internalAddress: ips
    .optional()
    .describe("Address within the cluster, IPv4 and/or IPv6 with a comma between. Default: address"),
  arch: z.enum(["amd64", "arm64"]).optional().describe("Processor architecture. Default: what the host says"),
  labels: labels.default({}).describe("Labels of the node"),
  taints: z.array(taint.describe("`key=value:Effect`")).default([]).describe("Taints of the node"),
  hostKeyChecking: z
    .enum(hostKeyChecking.unwrap().options)
    .optional()
    .describe(`${hostKeyChecking.description ?? ""}. Default: ssh.hostKeyChecking`),
  knownHostsPath: knownHostsPath.describe("known_hosts file. Default: ssh.knownHostsPath"),
  bastions: z.array(bastionSpec).optional().describe("Hosts to jump through, first hop first. Default: ssh.bastions"),
  forget: no("The host is gone for good: destroy gives it up without connecting to it"),
  ignorePreflight: checks.default([]).describe("Preflight checks that may fail on this host"),
});

export const ssh = z.strictObject({
  hostKeyChecking: hostKeyChecking.describe(hostKeyChecking.description ?? ""),
  knownHostsPath: knownHostsPath.describe("known_hosts file. Default: ~/.ssh/known_hosts"),
  bastions: bastions.describe("Hosts to jump through on the way to every host, first hop first"),
});

const group = (what: string) =>
  z.array(z.string().min(1).describe("A host's name, or several as a range: `node[1:3]`")).default([]).describe(what);

export const roleGroups = z.strictObject({
  etcd: group("Hosts with a member of etcd"),
  master: group("Hosts with the control plane"),
  worker: group("Hosts that run the workload"),
  registry: group("The host with the image registry; one at most"),
  loadbalancer: group("Hosts with keepalived and a load balancer, when externalLoadBalancer is kubexm"),
});

export const controlPlaneEndpoint = z.strictObject({
  externalLoadBalancer: z
    .enum(["", "kubexm", "external"])
    .default("")
    .describe("kubexm: made on the loadbalancer hosts; external: one of your own; empty: none"),
  internalLoadbalancer: z
    .enum(["", "haproxy", "nginx", "kube-vip"])
    .default("")
    .describe("haproxy, nginx: a proxy on every worker; kube-vip: a virtual address among the masters; empty: none"),
  externalDNS: no("The domain is resolved by your own DNS, not by the hosts files; lb_address stays empty then"),
  domain: dnsName.default("lb.kubexm.local").describe("Name under which the API servers are reached"),
  lb_address: z
    .union([z.literal(""), ip])
    .default("")
    .describe("Address of the load balancer, or the virtual address for kubexm and kube-vip"),
  port: z.number().int().min(1).max(65535).default(6443).describe("Port of the API servers"),
});

export const extra = z.strictObject({
  hosts: z
    .array(
      z.strictObject({
        domain: dnsName.describe("Name"),
        address: ip.describe("Address of the name"),
      }),
    )
    .default([])
    .describe("More lines for the hosts file of every host"),
  resolves: z
    .array(z.strictObject({ address: ip.describe("Address of a DNS server") }))
    .default([])
    .describe("More DNS servers for every host"),
});

export const mirrors = z.strictObject({
  files: z
    .array(
      z.strictObject({
        url: url.describe("Where the mirror's files begin; a login in it is kept encrypted in the state"),
        replaces: url
          .optional()
          .describe(
            "Begin of the upstream addresses it stands for. Default: all; the upstream address without https:// follows url",
          ),
        ownChecksums: no("The mirror rebuilds the files: its own checksum files are believed, not the catalogue"),
        caPath: localFile.optional().describe("CA certificate of the mirror, on this machine"),
      }),
    )
    .default([])
    .describe("Where files are downloaded from, in this order, before upstream"),
  images: z
    .array(
      z.strictObject({
        registry: registryName.describe("Upstream registry it stands for, for example registry.k8s.io"),
        url: registryUrl.describe("Address of the mirror"),
        caPath: localFile.optional().describe("CA certificate of the mirror, on this machine"),
        skipTLSVerify: no("Do not check the mirror's certificate"),
      }),
    )
    .default([])
    .describe("Where images are pulled from, in this order, before upstream"),
  imageArchives: z
    .array(localFile)
    .default([])
    .describe("Archives on this machine, of docker save or ctr images export --local; what they hold is not pulled"),
});

export const ignorePreflight = checks.default([]).describe("Preflight checks that may fail on any host");
