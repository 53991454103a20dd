import type * as pulumi from "@pulumi/pulumi";
import type { Host } from "../../provider/host";
import { Chrony } from "../chrony";
import type { ClusterSpec, HostsRecord } from "../config";
import { HostsFile } from "../hosts-file";
import { Kernel } from "../kernel";
import { Packages } from "../packages";
import { Timezone } from "../timezone";

/** What a node of Kubernetes needs from its kernel. */
const kernelModules = ["overlay", "br_netfilter"];
const kernelParameters = {
  "net.bridge.bridge-nf-call-iptables": 1,
  "net.bridge.bridge-nf-call-ip6tables": 1,
  "net.ipv4.ip_forward": 1,
};
const packages = {
  debs: ["socat", "conntrack", "ebtables", "ipset"],
  rpms: ["socat", "conntrack-tools", "ebtables", "ipset"],
};

export interface Surroundings {
  /** Prefix of all resource names. */
  cluster: string;
  spec: ClusterSpec;
  names: pulumi.Input<HostsRecord[]>;
  /** Addresses of all hosts. */
  addresses: pulumi.Input<string[]>;
  opts: pulumi.CustomResourceOptions;
}

/** Everything a machine needs before a container runtime comes onto it. */
export function prepareHost(
  host: Host,
  retain: { forget: boolean },
  { cluster, spec, names, addresses, opts }: Surroundings,
): pulumi.Resource[] {
  const name = (part: string) => `${cluster}-${host.name}-${part}`;
  const common = { host, ...retain };
  const { ntpServers, timezone, debs, rpms } = spec.system;
  const inCluster = (server: string) => spec.hosts.some((other) => other.name === server);
  const isServer = ntpServers.includes(host.name);
  const packagesReady = new Packages(
    name("packages"),
    { ...common, debs: [...packages.debs, ...debs], rpms: [...packages.rpms, ...rpms] },
    opts,
  );
  const hostsFile = new HostsFile(name("hosts-file"), { ...common, entries: names }, opts);
  const chrony = new Chrony(
    name("chrony"),
    {
      ...common,
      // A host that serves the others takes its time from outside only; it cannot follow itself.
      servers: ntpServers.filter((server) => (isServer ? !inCluster(server) : true)),
      serve: isServer,
      allow: isServer ? addresses : [],
    },
    { ...opts, dependsOn: [packagesReady, hostsFile] },
  );
  return [
    packagesReady,
    hostsFile,
    chrony,
    new Kernel(name("kernel"), { ...common, modules: kernelModules, sysctl: kernelParameters }, opts),
    ...(timezone === undefined ? [] : [new Timezone(name("timezone"), { ...common, zone: timezone }, opts)]),
  ];
}
