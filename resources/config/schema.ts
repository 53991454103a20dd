import { z } from "zod";
import {
  absolutePath,
  cidrs,
  count,
  dnsName,
  nameserver,
  no,
  packageName,
  registryName,
  timezone,
  version,
  zoneName,
} from "./leaves";
import { controlPlaneEndpoint, extra, host, ignorePreflight, mirrors, roleGroups, ssh } from "./schema-hosts";
import { etcd, kubernetes } from "./schema-kubernetes";

export const API_VERSION = "kubexm.mensylisir.io/v1alpha1";
export const KIND = "Cluster";

const system = z.strictObject({
  ntpServers: z
    .array(z.string().min(1).describe("Name or address; a host of this cluster becomes a time server"))
    .default([])
    .describe("Time servers of chrony. Default: those of the distribution"),
  timezone: timezone.optional().describe("Time zone of every host. Default: left as it is"),
  rpms: z.array(packageName).default([]).describe("More packages for hosts of the RHEL family"),
  debs: z.array(packageName).default([]).describe("More packages for hosts of the Debian family"),
  selinux: z
    .enum(["permissive", "disabled", "enforcing"])
    .default("permissive")
    .describe("Mode of SELinux, where there is one"),
  firewall: z
    .enum(["open", "disable"])
    .default("open")
    .describe("open: a running firewall lets through what the roles need; disable: it is switched off"),
});

const mode = (first: "Always" | "Never", what: string) =>
  z.enum(["Always", "CrossSubnet", "Never"]).default(first).describe(what);
const pluginVersion = (name: string) =>
  version.optional().describe(`Version of ${name}. Default: the catalogue's for this Kubernetes`);

const network = z.strictObject({
  plugin: z.enum(["flannel", "calico", "cilium"]).default("flannel").describe("The network plugin"),
  calico: z
    .strictObject({
      version: pluginVersion("Calico"),
      ipipMode: mode("Always", "IP in IP for the IPv4 pool; vxlanMode must be Never then"),
      vxlanMode: mode("Never", "VXLAN for the IPv4 pool; ipipMode must be Never then"),
      vethMTU: count(0, 65535).default(0).describe("MTU of the pods' interfaces; 0: found out"),
    })
    .prefault({})
    .describe("Settings of Calico"),
  flannel: z
    .strictObject({
      version: pluginVersion("flannel"),
      backendMode: z.enum(["vxlan", "host-gw"]).default("vxlan").describe("How packets travel between nodes"),
    })
    .prefault({})
    .describe("Settings of flannel"),
  cilium: z
    .strictObject({ version: pluginVersion("Cilium") })
    .prefault({})
    .describe("Settings of Cilium"),
  kubePodsCIDR: cidrs.default("10.233.64.0/18").describe("Range of the pods, IPv4 and/or IPv6 with a comma between"),
  kubeServiceCIDR: cidrs
    .default("10.233.0.0/18")
    .describe("Range of the services, IPv4 and/or IPv6 with a comma between"),
  ippool: z
    .strictObject({ blockSize: count(20, 32).default(26).describe("Prefix length of Calico's IPv4 address blocks") })
    .prefault({})
    .describe("Calico's address pool"),
});

const storage = z.strictObject({
  openebs: z
    .strictObject({ basePath: absolutePath.default("/var/openebs/local").describe("Folder of the local volumes") })
    .optional()
    .describe("OpenEBS local volumes"),
});

const registry = z.strictObject({
  type: z
    .enum(["registry", "harbor", "external"])
    .default("registry")
    .describe("What is set up on the registry host; external: one of your own"),
  privateRegistry: z
    .union([z.literal(""), registryName])
    .default("")
    .describe("Domain of the registry host"),
  namespaceOverride: z.string().default("").describe("Project within the registry"),
  auths: z
    .record(
      registryName,
      z.strictObject({
        username: z.string().optional().describe("Login name"),
        password: z.string().optional().describe("Password"),
        skipTLSVerify: no("Do not check the registry's certificate"),
        plainHTTP: no("Use HTTP"),
        certsPath: absolutePath.optional().describe("Folder with *.crt, *.cert and *.key"),
      }),
    )
    .default({})
    .describe("How registries are reached, by their domains"),
  containerdDataDir: absolutePath.default("/var/lib/containerd").describe("Folder of containerd's data"),
  dockerDataDir: absolutePath.default("/var/lib/docker").describe("Folder of Docker's data"),
  registryDataDir: absolutePath.default("/mnt/registry").describe("Folder of the registry's data"),
});

const externalZones = z
  .array(
    z.strictObject({
      zones: z.array(zoneName).min(1).describe("DNS zones"),
      nameservers: z.array(nameserver).min(1).describe("Who answers for them"),
      cache: z.number().int().min(0).default(30).describe("Seconds an answer is kept"),
      rewrite: z
        .array(z.string().min(1).describe("Arguments of CoreDNS's rewrite"))
        .default([])
        .describe("Rewrite rules"),
    }),
  )
  .default([])
  .describe("Zones that are asked elsewhere");

const dns = z.strictObject({
  dnsEtcHosts: z.string().default("").describe("Lines in the form of a hosts file that CoreDNS answers from"),
  coredns: z
    .strictObject({
      additionalConfigs: z.string().default("").describe("More lines for the Corefile's default zone"),
      externalZones,
      rewriteBlock: z.string().default("").describe("Rewrite blocks for the Corefile's default zone"),
      upstreamDNSServers: z.array(nameserver).default([]).describe("DNS servers after the cluster's own"),
    })
    .prefault({})
    .describe("Settings of CoreDNS"),
  nodelocaldns: z.strictObject({ externalZones }).prefault({}).describe("Settings of NodeLocal DNSCache"),
});

/** The sections as they are written, before what depends on other sections is filled in. */
export const sections = z.strictObject({
  hosts: z.array(host).min(1).describe("The machines"),
  roleGroups: roleGroups.describe("Which host has which roles"),
  controlPlaneEndpoint: controlPlaneEndpoint.prefault({}).describe("How the API servers are reached"),
  ssh: ssh.prefault({}).describe("What holds for the connections to all hosts"),
  system: system.prefault({}).describe("Settings of the operating systems"),
  kubernetes: kubernetes.prefault({}).describe("Kubernetes"),
  etcd: etcd.prefault({}).describe("etcd"),
  network: network.prefault({}).describe("The cluster's networks"),
  storage: storage.prefault({}).describe("Storage for the workload"),
  registry: registry.prefault({}).describe("The image registry"),
  addons: z
    .array(z.string().regex(/^[a-z0-9][-a-z0-9]*$/, { message: "is not an add-on's name; write for example metallb" }))
    .default([])
    .describe("Add-ons to install"),
  host: z.string().default("").describe("More lines for the hosts file of every host: `192.0.2.9 name …`"),
  dns: dns.prefault({}).describe("DNS within the cluster"),
  extra: extra.prefault({}).describe("More names and DNS servers for every host"),
  zone: z.enum(["", "cn"]).default("").describe("cn: files and images from public mirrors within China first"),
  mirrors: mirrors.prefault({}).describe("Where files and images come from"),
  ignorePreflight,
});

type Sections = z.output<typeof sections>;

export const minorOf = (version: string): number => Number(version.split(".")[1]);

/** What is left out and follows from elsewhere in the file. Running it again changes nothing. */
function complete(written: Sections) {
  const { ssh, kubernetes } = written;
  return {
    ...written,
    hosts: written.hosts.map((host) => ({
      ...host,
      hostKeyChecking: host.hostKeyChecking ?? ssh.hostKeyChecking,
      knownHostsPath: host.knownHostsPath ?? ssh.knownHostsPath,
      bastions: host.bastions ?? ssh.bastions,
    })),
    kubernetes: {
      ...kubernetes,
      proxyMode: kubernetes.proxyMode ?? (minorOf(kubernetes.version) < 35 ? "ipvs" : "iptables"),
    },
    etcd: { ...written.etcd, type: written.etcd.type ?? (kubernetes.type === "none" ? "kubeadm" : kubernetes.type) },
  };
}

export const clusterSpec = sections.transform(complete);

export const clusterFile = z.strictObject({
  apiVersion: z.literal(API_VERSION).describe("The form of this file"),
  kind: z.literal(KIND).describe("What the file describes"),
  metadata: z
    .strictObject({
      name: dnsName.describe("Name of the cluster; the name of its Pulumi stack too").meta({ examples: ["prod"] }),
    })
    .describe("About the cluster"),
  spec: clusterSpec.describe("The cluster"),
});

export type ClusterSpec = z.output<typeof clusterSpec>;
export type ClusterInput = z.input<typeof clusterSpec>;
export type ClusterHost = ClusterSpec["hosts"][number];
export type { Role } from "./schema-hosts";
