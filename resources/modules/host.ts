import * as pulumi from "@pulumi/pulumi";
import type { Host } from "../../provider/host";
import { Chrony } from "../chrony";
import { commaParts, type ClusterHost, type ClusterSpec, type Role } from "../config";
import { Packages } from "../packages";
import { Resolver } from "../resolver";
import { nodeModules, nodeParameters } from "./node-kernel";
import { portsFor } from "./ports";
import { System } from "./system";

/** For every host: what kubelet, kube-proxy and network plugins call, the clock, shell completion, and clients for network storage. */
export const packages = {
  debs: ["socat", "conntrack", "ebtables", "ipset", "chrony", "bash-completion", "nfs-common", "open-iscsi"],
  rpms: [
    ...["socat", "conntrack-tools", "ebtables", "ipset", "chrony"],
    ...["bash-completion", "nfs-utils", "iscsi-initiator-utils"],
  ],
};

export interface Surroundings {
  /** Prefix of all resource names. */
  cluster: string;
  spec: ClusterSpec;
  names: pulumi.Input<string[]>;
  /** Addresses within the cluster, by host. */
  addresses: pulumi.Output<Readonly<Record<string, string>>>;
  opts: pulumi.CustomResourceOptions;
}

/** A host to be made ready, and what a person said about losing it. */
export interface Machine {
  host: Host;
  /** By which this machine reaches it. */
  address: pulumi.Input<string>;
  /** Of SSH. */
  port?: pulumi.Input<number> | undefined;
  roles: readonly Role[];
  arch?: ClusterHost["arch"];
  forget: boolean;
}

export const archOf = ({ arch }: Machine) => (arch === undefined ? {} : { arch });

/** A machine with all that has to be there before Kubernetes comes onto it. */
export interface ReadyMachine extends Machine {
  ready: readonly pulumi.Resource[];
}

export interface PreparedMachine extends ReadyMachine {
  /** The part of it that a container runtime needs: names, and the kernel. */
  basis: readonly pulumi.Resource[];
  chrony: pulumi.Resource;
}

/** Everything machines need before a container runtime comes onto them. Those that serve time come before those that follow. */
export function prepareHosts(machines: readonly Machine[], surroundings: Surroundings): PreparedMachine[] {
  const { ntpServers } = surroundings.spec.system;
  const prepare = (machine: Machine, after: readonly pulumi.Resource[]) =>
    prepareHost(machine, [...after], surroundings);
  const servers = ntpServers.flatMap((name) => machines.find(({ host }) => host.name === name) ?? []);
  const serving = servers.reduce<PreparedMachine[]>((ready, server) => {
    const before = ready.map(({ chrony }) => chrony);
    return [...ready, prepare(server, before)];
  }, []);
  const clocks = serving.map(({ chrony }) => chrony);
  const following = machines.filter((machine) => !servers.includes(machine)).map((machine) => prepare(machine, clocks));
  return [...serving, ...following];
}

function prepareHost(
  machine: Machine,
  clocks: pulumi.Resource[],
  { cluster, spec, names, addresses, opts }: Surroundings,
): PreparedMachine {
  const { host, port, roles, forget } = machine;
  const name = (part: string) => `${cluster}-${host.name}-${part}`;
  const common = { host, forget };
  const after = (...resources: pulumi.Resource[]) => ({
    ...opts,
    dependsOn: [...toArray(opts.dependsOn), ...resources],
  });
  const { timezone, selinux, firewall } = spec.system;
  const dns = spec.extra.resolves.map(({ address }) => address);
  const time = timeOf(host.name, spec);

  const resolver = dns.length === 0 ? [] : [new Resolver(name("resolver"), { ...common, servers: dns }, opts)];
  const clockAfter = (...before: pulumi.Resource[]) =>
    new Chrony(
      name("chrony"),
      { ...common, ...time, allow: time.serve ? addresses.apply((all) => Object.values(all).flatMap(commaParts)) : [] },
      after(...before, ...resolver, ...clocks),
    );
  // All others wait for the first that serves time, and it goes by no name of theirs.
  const first = time.serve && clocks.length === 0 ? [clockAfter()] : [];
  const ssh = pulumi.output(port).apply((known) => `${known ?? 22}/tcp`);
  const system = new System(
    name("system"),
    {
      ...common,
      names,
      hostname: host.name,
      ...(timezone !== undefined && { timezone }),
      selinux,
      modules: nodeModules(spec),
      sysctl: nodeParameters(spec),
      firewall,
      ports: [ssh, ...portsFor(spec, roles)],
      networks: [...commaParts(spec.network.kubePodsCIDR), ...commaParts(spec.network.kubeServiceCIDR)],
    },
    after(...first),
  );
  const chrony = first[0] ?? clockAfter(system);
  // Only one changes a host at a time: the long one comes last, and files of what waits for the quick ones travel meanwhile.
  const tools = new Packages(name("packages"), { ...common, ...packagesFor(spec) }, after(system, ...resolver));
  const basis = [...resolver, system];
  return { ...machine, ready: [...basis, tools, chrony], basis, chrony };
}

/** Without it nobody could take back what kube-proxy makes in that mode. */
const ofProxy = ({ proxyMode, type }: ClusterSpec["kubernetes"]) =>
  type !== "none" && proxyMode === "ipvs" ? ["ipvsadm"] : [];

const packagesFor = ({ system, kubernetes }: ClusterSpec) => ({
  debs: [...packages.debs, ...ofProxy(kubernetes), ...system.debs],
  rpms: [...packages.rpms, ...ofProxy(kubernetes), ...system.rpms],
});

/** A host that serves time follows those named before it and the world's, the others follow all. */
function timeOf(host: string, { hosts, system: { ntpServers } }: ClusterSpec): { servers: string[]; serve: boolean } {
  const at = ntpServers.indexOf(host);
  const inCluster = (server: string) => hosts.some(({ name }) => name === server);
  return { serve: at >= 0, servers: ntpServers.filter((server, i) => at < 0 || i < at || !inCluster(server)) };
}

const toArray = (dependsOn: pulumi.CustomResourceOptions["dependsOn"]): pulumi.Input<pulumi.Resource>[] =>
  dependsOn === undefined ? [] : Array.isArray(dependsOn) ? dependsOn : [dependsOn as pulumi.Input<pulumi.Resource>];
