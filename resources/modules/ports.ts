import type { ClusterSpec, Role } from "../config";

interface Opening {
  readonly ports: readonly string[] | ((spec: ClusterSpec) => readonly string[]);
  readonly why: string;
  readonly roles: readonly Role[];
  /** Left out: always. */
  readonly when?: (spec: ClusterSpec) => boolean;
}

const nodes = ["master", "worker"] as const;
const plugin = (
  name: ClusterSpec["network"]["plugin"],
  more: (network: ClusterSpec["network"]) => boolean = () => true,
) => ({ roles: nodes, when: ({ network }: ClusterSpec) => network.plugin === name && more(network) }) as const;

/** Which ports the others must reach, by role. SSH is open on every host, NTP on those that serve time. */
export const openingsByRole: readonly Opening[] = [
  { ports: ["2379-2380/tcp"], why: "etcd: clients and members", roles: ["etcd"] },
  { ports: ({ controlPlaneEndpoint: { port } }) => [`${port}/tcp`], why: "API server", roles: ["master"] },
  { ports: ["10257/tcp"], why: "controller manager: metrics", roles: ["master"] },
  { ports: ["10259/tcp"], why: "scheduler: metrics", roles: ["master"] },
  { ports: ["10250/tcp"], why: "kubelet: logs, exec and metrics", roles: nodes },
  { ports: ["30000-32767/tcp", "30000-32767/udp"], why: "services of type NodePort", roles: nodes },
  {
    ports: ["8472/udp"],
    why: "flannel: VXLAN",
    ...plugin("flannel", ({ flannel }) => flannel.backendMode === "vxlan"),
  },
  { ports: ["4789/udp"], why: "Calico: VXLAN", ...plugin("calico", ({ calico }) => calico.vxlanMode !== "Never") },
  { ports: ["179/tcp"], why: "Calico: BGP", ...plugin("calico", ({ calico }) => calico.vxlanMode === "Never") },
  { ports: ["5473/tcp"], why: "Calico: Typha", ...plugin("calico") },
  { ports: ["8472/udp", "4240/tcp"], why: "Cilium: VXLAN and health", ...plugin("cilium") },
];

/** The ports of a host with these roles, each once. */
export function portsFor(spec: ClusterSpec, roles: readonly Role[]): string[] {
  const { externalLoadBalancer, port } = spec.controlPlaneEndpoint;
  const registryPort = /:(\d+)$/.exec(spec.registry.privateRegistry)?.[1] ?? "443";
  const chosen = openingsByRole.filter(
    (row) => row.roles.some((role) => roles.includes(role)) && (row.when?.(spec) ?? true),
  );
  return [
    ...new Set([
      ...chosen.flatMap(({ ports }) => (typeof ports === "function" ? ports(spec) : ports)),
      ...(roles.includes("loadbalancer") && externalLoadBalancer === "kubexm" ? [`${port}/tcp`] : []),
      ...(roles.includes("registry") ? [`${registryPort}/tcp`] : []),
    ]),
  ];
}
