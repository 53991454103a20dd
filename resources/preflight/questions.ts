import { z } from "zod";
import { commaParts, hostsWithRoles, type ClusterSpec, type HostRoles, type Role } from "../config";
import { ownerOf } from "../../provider/arguments";
import { containerdOf } from "../config/containerd-form";
import { etcdDirMayBeShared } from "../config/etcd-dir";
import { nodeModules, podsHaveIpv6 } from "../modules/node-kernel";
import { portsFor } from "../modules/ports";
import type { Asked, Reach } from "./asked";

/** Ports that only the host itself uses. */
const LOCAL: readonly (readonly [Role, readonly string[]])[] = [
  ["etcd", ["2381/tcp"]],
  ["master", ["10248/tcp", "10249/tcp", "10256/tcp"]],
  ["worker", ["10248/tcp", "10249/tcp", "10256/tcp"]],
];
/** On the ports of NodePort services nothing listens: packets are turned round before. */
const isNodePorts = (range: string) => range.startsWith("30000-");

function listening(spec: ClusterSpec, roles: readonly Role[]): string[] {
  const local = LOCAL.filter(([role]) => roles.includes(role)).flatMap(([, ports]) => ports);
  return [...new Set([...portsFor(spec, roles).filter((range) => !isNodePorts(range)), ...local])];
}

const NODES: readonly Role[] = ["master", "worker"];

const GIB = 2 ** 30;

/** GiB that must be free: what comes with up, and room to begin the work with. */
function diskNeeds(spec: ClusterSpec, roles: readonly Role[]): Record<string, number> {
  const node = roles.some((role) => NODES.includes(role));
  const { containerdDataDir, dockerDataDir, registryDataDir } = spec.registry;
  const images = spec.kubernetes.containerRuntime.type === "docker" ? dockerDataDir : containerdDataDir;
  const etcd = Math.ceil((2 * spec.etcd.quotaBackendBytes) / GIB);
  return {
    ...(roles.length > 0 && { "/usr/local/bin": 1 }),
    ...(node && { [images]: 5, "/var/lib/kubelet": 1 }),
    ...(roles.includes("etcd") && { [spec.etcd.dataDir]: Math.max(1, etcd) }),
    ...(roles.includes("registry") && { [registryDataDir]: 5 }),
  };
}

const CALLED: readonly Role[] = ["master", "etcd", "registry"];

interface Known {
  readonly all: readonly HostRoles[];
  readonly byName: ReadonlyMap<string, HostRoles>;
  /** Those whom others have to reach: few, however large the cluster. */
  readonly called: readonly HostRoles[];
}

/** What does not depend on the host that is asked: worked out for each of them, it would cost a large cluster minutes. */
const known = new WeakMap<ClusterSpec, Known>();

function knownOf(spec: ClusterSpec): Known {
  const before = known.get(spec);
  if (before !== undefined) return before;
  const all = hostsWithRoles(spec);
  const now = {
    all,
    byName: new Map(all.map((row) => [row.host.name, row])),
    called: all.filter(({ roles }) => roles.some((role) => CALLED.includes(role))),
  };
  known.set(spec, now);
  return now;
}
/** The address by which the others reach it: the first of those within the cluster. */
export const ownAddress = (addresses: string): string => commaParts(addresses)[0] ?? addresses;

/** Whom a host must reach, in this many ways at most however large the cluster: all masters, etcd, the registry. */
export function reachOf(spec: ClusterSpec, host: string): Omit<Reach, "address">[] {
  const { byName, called } = knownOf(spec);
  const roles = byName.get(host)?.roles ?? [];
  const node = roles.includes("master") || roles.includes("worker");
  if (spec.kubernetes.type === "none") return [];
  const keepsEtcd = roles.includes("etcd");
  const registry = portsFor(spec, ["registry"]).map((port) => parseInt(port, 10));
  return called
    .filter((other) => other.host.name !== host)
    .flatMap((other) => {
      const has = (role: Role) => other.roles.includes(role);
      const etcd = has("etcd");
      const ports = [
        ...(node && has("master") ? [spec.controlPlaneEndpoint.port] : []),
        ...(etcd && (keepsEtcd || roles.includes("master")) ? [2379] : []),
        ...(etcd && keepsEtcd ? [2380] : []),
        ...(node && has("registry") ? registry : []),
      ];
      return ports.length === 0 ? [] : [{ host: other.host.name, ports, answers: false }];
    });
}

/** Every node, as the first master must reach it: by kubelet's port. */
export function backwardsOf(spec: ClusterSpec): { from: string; to: Omit<Reach, "address">[] } {
  const { all } = knownOf(spec);
  const from = (all.find(({ roles }) => roles.includes("master")) ?? all[0])?.host.name ?? "";
  if (spec.kubernetes.type === "none") return { from, to: [] };
  const to = all
    .filter(({ host, roles }) => host.name !== from && (roles.includes("worker") || roles.includes("master")))
    .map(({ host }) => ({ host: host.name, ports: [10250], answers: false }));
  return { from, to };
}

/** With the addresses of those to be reached, known already or only later. */
export const placed = <A>(reach: readonly Omit<Reach, "address">[], addressOf: (host: string) => A) =>
  reach.map((row) => ({ ...row, address: addressOf(row.host) }));

/** Whom the ledger of a node of this cluster names as the owner of its place. */
export const placeOf = (cluster: string, host: string): string => ownerOf("KubernetesNode", `${cluster}-${host}-node`);

/** All that a host is asked. */
export function askedOf<A>(spec: ClusterSpec, host: string, addressOf: (host: string) => A) {
  const { reach, ...questions } = questionsFor(spec, host);
  return { ...questions, reach: [...reach, ...placed(reachOf(spec, host), addressOf)] };
}

/** An etcd of the user's own is there already. */
function externalEtcd({ etcd }: ClusterSpec, roles: readonly Role[]): Reach[] {
  if (etcd.type !== "external" || !roles.includes("master")) return [];
  return (etcd.external?.endpoints ?? []).map((endpoint) => {
    const { hostname, port, protocol, host } = new URL(endpoint);
    const number = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
    return { host, address: hostname.replace(/^\[|\]$/g, ""), ports: [number], answers: true };
  });
}

const configuration = z.object({ failCgroupV1: z.boolean().default(true) });

/** What is asked of a host, all plain data but the addresses of the others. */
export function questionsFor(spec: ClusterSpec, name: string): Omit<Asked, "reach"> & { reach: Reach[] } {
  const { roles = [], host } = knownOf(spec).byName.get(name) ?? {};
  const { kubernetes, system } = spec;
  const { type: runtime, containerd } = kubernetes.containerRuntime;
  const { failCgroupV1 } = configuration.safeParse(kubernetes.kubeletConfiguration).data ?? { failCgroupV1: true };
  // Hosts that are only made ready need no more than that.
  const cluster = kubernetes.type !== "none";
  const adopts = cluster && containerd.existing === "adopt" && roles.some((role) => NODES.includes(role));
  return {
    roles,
    cluster,
    version: kubernetes.version,
    kubeadm: kubernetes.type === "kubeadm" && !kubernetes.ignorePreflightErrors.includes("SystemVerification"),
    runtime,
    existingRuntime: containerd.existing,
    ...(adopts && { runtimeVersion: containerdOf(spec) }),
    leftovers: kubernetes.leftovers,
    cgroupV1: !failCgroupV1,
    nftables: kubernetes.proxyMode === "nftables",
    modules: nodeModules(spec),
    ports: cluster ? listening(spec, roles) : [],
    disk: cluster ? diskNeeds(spec, roles) : {},
    ...(cluster && roles.includes("etcd") && { etcdDir: spec.etcd.dataDir }),
    etcdDirShared: etcdDirMayBeShared(spec.etcd.dataDir, kubernetes.ignorePreflightErrors),
    reach: cluster ? externalEtcd(spec, roles) : [],
    ...(host?.arch !== undefined && { arch: host.arch }),
    ...(system.timezone !== undefined && { zone: system.timezone }),
    moreDns: spec.extra.resolves.length > 0,
    ipv6: cluster && podsHaveIpv6(spec),
    selinux: system.selinux,
    firewall: system.firewall,
    ignore: [...new Set([...spec.ignorePreflight, ...(host?.ignorePreflight ?? [])])],
  };
}
