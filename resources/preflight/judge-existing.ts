import { fail, pass, warn, type Judge } from "./checks";
import type { Installed, Seen, Socket } from "./seen";

type Group = "kubernetes" | "etcd" | "runtime";

/** Units and programs by what they belong to. Docker brings a containerd of its own. */
const GROUPS: Readonly<Record<string, Group>> = {
  kubelet: "kubernetes",
  kubeadm: "kubernetes",
  k3s: "kubernetes",
  "k3s-agent": "kubernetes",
  rke2: "kubernetes",
  "rke2-server": "kubernetes",
  "rke2-agent": "kubernetes",
  k0s: "kubernetes",
  k0scontroller: "kubernetes",
  k0sworker: "kubernetes",
  "snap.microk8s.daemon-kubelite": "kubernetes",
  etcd: "etcd",
  containerd: "runtime",
  docker: "runtime",
  dockerd: "runtime",
  crio: "runtime",
  isulad: "runtime",
};

/** What an entry of the ledger must name for a thing of the group to be ours. */
const OURS: Readonly<Record<Group, RegExp>> = {
  kubernetes: /kubelet|kubeadm|kubernetes|kube-/,
  // Of kubeadm's own etcd the ledger knows kubeadm only.
  etcd: /etcd|kubeadm|kubelet/,
  runtime: /containerd|docker|cri-?o|isula/,
};
const isOurs = ({ ledger }: Seen, group: Group) => ledger.some((id) => OURS[group].test(id));

const groupOfFile = (path: string): Group => (path.includes("etcd") ? "etcd" : "kubernetes");
const textOf = ({ name, path, version }: Installed) => (version === "" ? path : `${path} (${name}: ${version})`);

interface Remains {
  readonly group: Group;
  readonly name: string;
  readonly text: string;
}

function remains(seen: Seen): Remains[] {
  const things = [...seen.binaries, ...seen.units].flatMap((item): Remains[] => {
    const group = GROUPS[item.name];
    return group === undefined ? [] : [{ group, name: item.name, text: textOf(item) }];
  });
  const files = seen.left.map((path): Remains => ({ group: groupOfFile(path), name: "", text: path }));
  return [...things, ...files].filter(({ group }) => !isOurs(seen, group));
}

const MOST = 6;
const listed = (all: readonly Remains[]) =>
  all
    .slice(0, MOST)
    .map(({ text }) => text)
    .join(", ") + (all.length > MOST ? ` and ${all.length - MOST} more` : "");

export const judgeExisting: Judge = (seen, { cluster: wanted, runtime, existingRuntime, leftovers }) => {
  if (!wanted) return undefined;
  const all = remains(seen);
  const cluster = all.filter(({ group }) => group !== "runtime");
  if (cluster.length > 0 && leftovers === "clean")
    return warn(listed(all), "nothing: it is removed for good (kubernetes.leftovers: clean)");
  if (cluster.length > 0)
    return fail(
      listed(all),
      "take the old cluster off first, with what set it up (kubexm destroy, kubeadm reset, k3s-uninstall.sh …), and remove what it leaves; or write kubernetes.leftovers: clean",
    );
  if (all.length === 0) return pass(seen.ledger.length === 0 ? "none" : "none but kubexm's own");
  if (runtime === "containerd" && existingRuntime === "refuse")
    return fail(listed(all), "remove it; or write adopt or replace to kubernetes.containerRuntime.containerd.existing");
  return warn(listed(all), `nothing: ${runtime} is set up beside it, or in its place (${existingRuntime})`);
};

/** Programs that listen in a cluster, by the group whose ledger entries make them ours. */
const PROGRAMS: readonly (readonly [RegExp, Group | "balancer"])[] = [
  [/^(kube|flanneld|calico|bird|cilium|coredns|node-cache)/, "kubernetes"],
  [/^etcd/, "etcd"],
  [/^(containerd|dockerd|docker-proxy|crio)/, "runtime"],
  [/^(haproxy|nginx|keepalived|registry)/, "balancer"],
];
const BALANCER = /haproxy|nginx|keepalived|registry|kubelet/;

function isClusters(seen: Seen, { program }: Socket): boolean {
  // The kernel's own, as of VXLAN, show no program.
  if (program === undefined) return isOurs(seen, "kubernetes");
  const group = PROGRAMS.find(([name]) => name.test(program))?.[1];
  if (group === undefined) return false;
  return group === "balancer" ? seen.ledger.some((id) => BALANCER.test(id)) : isOurs(seen, group);
}

const holds = (range: string, { protocol, port }: Socket) => {
  const [, from = "", to = from, wanted] = /^(\d+)(?:-(\d+))?\/(\w+)$/.exec(range) ?? [];
  return wanted === protocol && port >= Number(from) && port <= Number(to);
};

export const judgePorts: Judge = (seen, { ports }) => {
  if (ports.length === 0) return undefined;
  if (seen.sockets === undefined)
    return warn("it cannot be told which ports are taken: there is no ss", "install iproute2 (RHEL: iproute)");
  const taken = seen.sockets.filter(
    (socket) => ports.some((range) => holds(range, socket)) && !isClusters(seen, socket),
  );
  if (taken.length === 0) return pass(`${ports.join(", ")} free`);
  const texts = taken.map(({ protocol, port, program, pid }) =>
    program === undefined
      ? `${port}/${protocol} by the kernel`
      : `${port}/${protocol} by ${program} (PID ${String(pid)})`,
  );
  return fail(`taken: ${[...new Set(texts)].join(", ")}`, "stop what listens there, or let it listen elsewhere");
};
