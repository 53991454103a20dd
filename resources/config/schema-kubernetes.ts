import { z } from "zod";
import {
  absolutePath,
  argument,
  certificateName,
  count,
  dnsName,
  featureGate,
  kubernetesVersion,
  localFile,
  no,
  oneOrMore,
  passthrough,
  registryAddress,
  registryName,
  url,
  version,
} from "./leaves";

export const DEFAULT_KUBERNETES = "v1.35.4";
export const RUNTIMES = ["containerd", "docker", "cri-o", "isula"] as const;
export const PROXY_MODES = ["iptables", "ipvs", "nftables"] as const;

const containerd = z.strictObject({
  version: version
    .optional()
    .describe("Version of containerd. Default: containerRuntime.version, else the catalogue's"),
  registryMirrors: oneOrMore(registryAddress).default([]).describe("Mirrors of docker.io, in order; one, or a list"),
  insecureRegistries: oneOrMore(registryName)
    .default([])
    .describe("Registries reached over plain HTTP or with an unknown certificate; one, or a list"),
  existing: z
    .enum(["refuse", "adopt", "replace"])
    .default("refuse")
    .describe("What to do with a containerd that is there already and is not kubexm's"),
  config: passthrough.default({}).describe("Merged into containerd's config.toml"),
});

export const containerRuntime = z.strictObject({
  type: z.enum(RUNTIMES).default("containerd").describe("The container runtime"),
  version: version.optional().describe("Its version. Default: the catalogue's for this Kubernetes"),
  containerd: containerd.prefault({}).describe("Settings of containerd"),
});

const args = (what: string) => z.array(argument).default([]).describe(`More arguments of ${what}, as \`--name=value\``);
const feature = (what: string) =>
  z
    .strictObject({ enabled: no(`Set up ${what}`) })
    .prefault({})
    .describe(what);

export const kubernetes = z.strictObject({
  type: z
    .enum(["kubexm", "kubeadm", "none"])
    .default("kubeadm")
    .describe("kubexm: components as binaries and units; kubeadm: set up by kubeadm; none: hosts are only made ready"),
  version: kubernetesVersion
    .default(DEFAULT_KUBERNETES)
    .describe("Version of Kubernetes; state it, so that a newer kubexm keeps it"),
  clusterName: dnsName.default("cluster.local").describe("DNS domain of the cluster's services"),
  apiserverCertExtraSans: z
    .array(certificateName.describe("A name or address"))
    .default([])
    .describe("More names and addresses in the API server's certificate"),
  containerRuntime: containerRuntime.prefault({}).describe("The container runtime"),
  autoRenewCerts: no("Renew the control plane's certificates by a timer"),
  masqueradeAll: no("kube-proxy rewrites the source of all traffic to services"),
  maxPods: count(1, 65535).default(110).describe("Most pods on a node"),
  podPidsLimit: z.number().int().min(-1).default(10000).describe("Most processes in a pod; -1: no limit"),
  nodeCidrMaskSize: count(8, 32).default(24).describe("Prefix length of a node's share of the IPv4 pod range"),
  nodeCidrMaskSizeIPv6: count(8, 128).default(120).describe("Prefix length of a node's share of the IPv6 pod range"),
  proxyMode: z
    .enum(PROXY_MODES)
    .optional()
    .describe("How kube-proxy works. Default: ipvs below Kubernetes 1.35, iptables from there on"),
  featureGates: z.record(featureGate, z.boolean()).default({}).describe("Feature gates of all components"),
  kubeletArgs: args("kubelet"),
  apiserverArgs: args("kube-apiserver"),
  controllerManagerArgs: args("kube-controller-manager"),
  schedulerArgs: args("kube-scheduler"),
  kubeletConfiguration: passthrough.default({}).describe("Merged into KubeletConfiguration"),
  kubeProxyConfiguration: passthrough.default({}).describe("Merged into KubeProxyConfiguration"),
  ignorePreflightErrors: z
    .array(z.string().min(1).describe("Name of a check of kubeadm's"))
    .default([])
    .describe("Passed to kubeadm --ignore-preflight-errors"),
  leftovers: z
    .enum(["refuse", "clean"])
    .default("refuse")
    .describe("What to do with remains of another cluster on a host: clean removes them for good"),
  drain: z
    .strictObject({
      timeout: z.number().int().min(1).default(300).describe("Seconds for the pods to leave a node that goes"),
      force: no("Pods that nothing starts elsewhere are deleted too"),
    })
    .prefault({})
    .describe("How a node is emptied before it leaves"),
  kata: feature("Kata Containers"),
  nodeFeatureDiscovery: feature("Node Feature Discovery"),
});

export const etcd = z.strictObject({
  type: z
    .enum(["kubexm", "kubeadm", "external"])
    .optional()
    .describe(
      "kubexm: a unit on each etcd host; kubeadm: a static pod on each master; external: one of your own. Default: as kubernetes.type",
    ),
  version: version.optional().describe("Version of etcd. Default: the catalogue's for this Kubernetes"),
  external: z
    .strictObject({
      endpoints: z
        .array(url.describe("Address of a member, with its port"))
        .min(1)
        .describe("Addresses of the members"),
      caFile: localFile.optional().describe("CA certificate, on this machine; absent without TLS"),
      certFile: localFile.optional().describe("Client certificate, on this machine"),
      keyFile: localFile.optional().describe("Key of the client certificate, on this machine"),
    })
    .optional()
    .describe("An etcd of your own, for type external"),
  dataDir: absolutePath.default("/var/lib/etcd").describe("Folder of the data"),
  heartbeatInterval: count(1, 60000).default(250).describe("Milliseconds between heartbeats"),
  electionTimeout: count(10, 50000).default(5000).describe("Milliseconds without heartbeat until an election"),
  snapshotCount: z.number().int().min(1).default(10000).describe("Transactions until a snapshot goes to disk"),
  autoCompactionRetention: z.number().int().min(0).default(8).describe("Hours of history that are kept; 0: all"),
  metrics: z.enum(["basic", "extensive"]).default("basic").describe("extensive: histograms too"),
  quotaBackendBytes: z
    .number()
    .int()
    .min(0)
    .max(2 ** 43)
    .default(2147483648)
    .describe("Most bytes of the database; etcd warns above 8 GiB"),
  maxRequestBytes: z.number().int().min(1).default(1572864).describe("Most bytes of a client's request"),
  maxSnapshots: z.number().int().min(0).default(5).describe("Snapshot files kept; 0: all"),
  maxWals: z.number().int().min(0).default(5).describe("WAL files kept; 0: all"),
  logLevel: z.enum(["debug", "info", "warn", "error", "panic", "fatal"]).default("info").describe("Log level"),
});
