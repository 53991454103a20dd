import type { ClusterSpec } from "../config";
import { commaParts, parseCidr } from "../config/ip";

interface Parameter {
  readonly name: string;
  readonly value: number;
  readonly why: string;
}

const kubelet = "kubelet sets it when it starts; set here first, the host gets its old value back in the end";

/** What a node of Kubernetes needs of its kernel, and why. Nothing stands here that only some workload wants. */
export const parameters: readonly Parameter[] = [
  { name: "net.ipv4.ip_forward", value: 1, why: "packets of pods pass through the node" },
  { name: "net.bridge.bridge-nf-call-iptables", value: 1, why: "kube-proxy's rules hold for pods on a bridge" },
  { name: "net.bridge.bridge-nf-call-ip6tables", value: 1, why: "the same for IPv6" },
  {
    name: "fs.inotify.max_user_instances",
    value: 8192,
    why: "kubelet and every container that follows files take one each; 128 are gone with some dozen pods",
  },
  {
    name: "fs.inotify.max_user_watches",
    value: 1048576,
    why: "the same for each file followed; the most that the kernel ever chooses itself, and costs nothing until used",
  },
  { name: "kernel.pid_max", value: 4194304, why: "32768 do not suffice for 110 pods with up to 10,000 processes each" },
  { name: "vm.overcommit_memory", value: 1, why: kubelet },
  { name: "vm.panic_on_oom", value: 0, why: kubelet },
  { name: "kernel.panic", value: 10, why: `${kubelet}: a node that panics comes back by itself` },
  { name: "kernel.panic_on_oops", value: 1, why: kubelet },
  { name: "kernel.keys.root_maxkeys", value: 1000000, why: `${kubelet}: containers take a key each` },
  { name: "kernel.keys.root_maxbytes", value: 25000000, why: kubelet },
];

/** Only where pods have IPv6: a kernel that forwards no longer learns its own routes from router advertisements. */
const ipv6: Parameter = {
  name: "net.ipv6.conf.all.forwarding",
  value: 1,
  why: "packets of pods pass through the node",
};

const ipvs = ["ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh", "nf_conntrack"];

/** overlay: layers of containers; br_netfilter: the parameters net.bridge.*. */
export const nodeModules = ({ kubernetes }: Pick<ClusterSpec, "kubernetes">): string[] => [
  "overlay",
  "br_netfilter",
  ...(kubernetes.proxyMode === "ipvs" ? ipvs : []),
];

/** The host forwards IPv6 then. */
export const podsHaveIpv6 = ({ network }: Pick<ClusterSpec, "network">): boolean =>
  commaParts(network.kubePodsCIDR).some((cidr) => parseCidr(cidr)?.family === 6);

export function nodeParameters(spec: Pick<ClusterSpec, "network">): Record<string, number> {
  return Object.fromEntries(
    [...parameters, ...(podsHaveIpv6(spec) ? [ipv6] : [])].map(({ name, value }) => [name, value]),
  );
}
