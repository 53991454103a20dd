import { leastInPlaceOf, readsTheSame } from "../config/containerd-form";
import { etcdDirAdvice } from "../config/etcd-dir";
import type { Asked } from "./asked";
import { fail, pass, warn, type Judge, type Verdict } from "./checks";
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
  readonly path: string;
  readonly text: string;
}

function remains(seen: Seen): Remains[] {
  const things = [...seen.binaries, ...seen.units].flatMap((item): Remains[] => {
    const group = GROUPS[item.name];
    return group === undefined ? [] : [{ group, name: item.name, path: item.path, text: textOf(item) }];
  });
  const files = seen.left.map((path): Remains => ({ group: groupOfFile(path), name: "", path, text: path }));
  return [...things, ...files].filter(({ group }) => !isOurs(seen, group));
}

const MOST = 6;
const listed = (all: readonly Remains[]) =>
  all
    .slice(0, MOST)
    .map(({ text }) => text)
    .join(", ") + (all.length > MOST ? ` and ${all.length - MOST} more` : "");

/** What becomes of what is left of another cluster where it is to be cleaned. */
type Fate = "goes" | "comes back" | "stays" | "hinders";
const WORDS: Readonly<Record<Exclude<Fate, "hinders">, string>> = {
  goes: "the files of the old node are removed for good",
  "comes back": "what is in /etc/cni/net.d is set aside, and comes back with destroy",
  stays: "what no node of kubexm uses stays",
};

/** Only a node of kubeadm can be taken off a host without what set it up. */
function fateOf({ name, path }: Remains, { etcdDir }: Asked): Fate {
  // A package lays its own settings over the unit of this name, ours too, and its kubelet would run.
  if (name === "kubelet" && /^(\/usr)?\/lib\//.test(path)) return "hinders";
  if (name !== "") return name === "kubelet" || name === "kubeadm" ? "stays" : "hinders";
  if (path.startsWith("/etc/cni/")) return "comes back";
  if (path.endsWith("/etcd/member")) return etcdDir !== undefined && path.startsWith(`${etcdDir}/`) ? "goes" : "stays";
  return /^\/(etc\/kubernetes|var\/lib\/kubelet)\//.test(path) ? "goes" : "hinders";
}

function judgeCluster(all: readonly Remains[], asked: Asked): Verdict | undefined {
  if (all.length === 0) return undefined;
  const fates = new Set(all.map((one) => fateOf(one, asked)));
  const hindering = all.filter((one) => fateOf(one, asked) === "hinders");
  if (asked.leftovers === "refuse")
    return fail(
      listed(all),
      "take the old cluster off first, with what set it up (kubexm destroy, kubeadm reset, k3s-uninstall.sh …), and remove what it leaves" +
        (hindering.length > 0 ? "" : "; or write kubernetes.leftovers: clean"),
    );
  if (hindering.length > 0)
    return fail(
      listed(hindering),
      "kubernetes.leftovers: clean takes off a node of kubeadm only; remove these with what set them up (k3s-uninstall.sh, k0s reset, the package manager …)",
    );
  const words = Object.entries(WORDS).flatMap(([fate, text]) => (fates.has(fate as Fate) ? [text] : []));
  return warn(listed(all), `nothing: ${words.join(", ")} (kubernetes.leftovers: clean)`);
}

/** Its configuration is ours then, and one that it cannot read would stop the containers that run in it. */
function judgeAdopted({ binaries }: Seen, { version, runtimeVersion }: Asked): Verdict | undefined {
  if (runtimeVersion === undefined) return undefined;
  const program = binaries.find(({ name }) => name === "containerd");
  const found = /\d+\.\d+\.\d+/.exec(program?.version ?? "")?.[0];
  const other = "replace in place of adopt to kubernetes.containerRuntime.containerd.existing";
  if (program === undefined || found === undefined)
    return fail("there is no containerd that could be adopted", `install one, or write ${other}`);
  const least = leastInPlaceOf(found, version);
  if (least !== undefined)
    return fail(
      `${textOf(program)} is too old for Kubernetes ${version}`,
      `bring it to ${least} or newer, or write ${other}`,
    );
  if (readsTheSame(found, runtimeVersion)) return undefined;
  return fail(
    `${textOf(program)} does not read the configuration of ${runtimeVersion}`,
    `write ${found} to kubernetes.containerRuntime.containerd.version, as nothing else is known of it; or ${other}`,
  );
}

function judgeRuntime(all: readonly Remains[], { runtime, existingRuntime }: Asked): Verdict | undefined {
  if (all.length === 0) return undefined;
  if (runtime === "containerd" && existingRuntime === "refuse")
    return fail(listed(all), "remove it; or write adopt or replace to kubernetes.containerRuntime.containerd.existing");
  return warn(listed(all), `nothing: ${runtime} is set up beside it, or in its place (${existingRuntime})`);
}

/** kubeadm refuses such a folder, and its first master would be told so only when the images are there. */
function judgeEtcdDir(seen: Seen, { etcdDir, etcdDirShared }: Asked): Verdict | undefined {
  if (etcdDir === undefined || etcdDirShared || seen.besidesEtcd.length === 0 || isOurs(seen, "etcd")) return undefined;
  return fail(
    `${etcdDir}, where etcd is to keep its data, holds ${seen.besidesEtcd.join(", ")}`,
    etcdDirAdvice(etcdDir),
  );
}

/** By another file, another name of the cluster or of the host: all would be taken for made, and belong to two. */
function judgePlace({ places }: Seen, { place }: Asked): Verdict | undefined {
  if (place === undefined || places.length === 0 || places.includes(place)) return undefined;
  const names = places.map((owner) => owner.replace(/^KubernetesNode\./, "")).join(", ");
  return fail(
    `it is a node of kubexm's already: ${names}`,
    "take it out of that cluster first (out of its groups, up); or, if it was renamed, write the old name back, take it out, run up, and add it again",
  );
}

/** A runtime stays where a cluster is cleaned: each is judged by itself, and the graver says what is to be done. */
export const judgeExisting: Judge = (seen, asked) => {
  if (!asked.cluster) return undefined;
  const all = remains(seen);
  const ofRuntime = ({ group }: Remains) => group === "runtime";
  const verdicts = [
    judgePlace(seen, asked),
    judgeCluster(
      all.filter((one) => !ofRuntime(one)),
      asked,
    ),
    judgeEtcdDir(seen, asked),
    judgeAdopted(seen, asked),
    judgeRuntime(all.filter(ofRuntime), asked),
  ].flatMap((verdict) => verdict ?? []);
  const failed = verdicts.filter(({ result }) => result === "fail");
  const [first, ...more] = failed.length > 0 ? failed : verdicts;
  if (first === undefined) return pass(seen.ledger.length === 0 ? "none" : "none but kubexm's own");
  return more.reduce(
    (one, { found, fix }) => ({ ...one, found: `${one.found}, ${found}`, fix: `${one.fix ?? ""}; ${fix ?? ""}` }),
    first,
  );
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
