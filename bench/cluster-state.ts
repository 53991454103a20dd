import type { LabHost } from "../lab/hosts.js";
import { labExec } from "../lab/hosts.js";

interface Condition {
  type: string;
  status: string;
  lastTransitionTime: string;
}

interface Thing {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; deletionTimestamp?: string };
  spec: { taints?: { key: string; effect: string }[]; containers?: { image: string }[] };
  status: {
    conditions?: Condition[];
    nodeInfo?: { kubeletVersion: string; containerRuntimeVersion: string };
  };
}

/** What came of a cluster, however it was made. */
export interface ClusterState {
  /** A line for each node and each pod, without what is otherwise every time: equal clusters have equal lines. */
  lines: string[];
  /** Since the epoch, as the cluster says: to the second. */
  nodesReadyMs: number;
  dnsReadyMs: number;
}

const readiness = ({ status }: Thing) => status.conditions?.find(({ type }) => type === "Ready");
const isReady = (thing: Thing) => (readiness(thing)?.status === "True" ? "ready" : "not ready");
const last = (things: readonly Thing[]) =>
  Math.max(...things.map((thing) => Date.parse(readiness(thing)?.lastTransitionTime ?? "")));

function nodeLine(node: Thing): string {
  const { kubeletVersion, containerRuntimeVersion } = node.status.nodeInfo ?? {};
  const labels = Object.entries(node.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  // Those go some time after the node is ready.
  const lasting = (node.spec.taints ?? []).filter(({ key }) => !key.startsWith("node.kubernetes.io/"));
  const taints = lasting.map(({ key, effect }) => `${key}:${effect}`);
  const words = [node.metadata.name, kubeletVersion, containerRuntimeVersion, isReady(node)];
  return [...words, ...labels.sort(), ...taints.sort()].join(" ");
}

const podLine = (pod: Thing) =>
  [pod.metadata.namespace, ...(pod.spec.containers ?? []).map(({ image }) => image), isReady(pod)].join(" ");

/** From `kubectl get nodes,pods -A -o json`. */
export function stateIn(json: string): ClusterState {
  const { items } = JSON.parse(json) as { items: Thing[] };
  const nodes = items.filter(({ kind }) => kind === "Node");
  // One that is on its way out has been replaced already.
  const pods = items.filter(({ kind, metadata }) => kind === "Pod" && metadata.deletionTimestamp === undefined);
  return {
    lines: [...nodes.map(nodeLine).sort(), ...pods.map(podLine).sort()],
    nodesReadyMs: last(nodes),
    dnsReadyMs: last(pods.filter(({ metadata }) => metadata.labels?.["k8s-app"] === "kube-dns")),
  };
}

/** Waits until all pods are ready: what is still on its way belongs to the cluster, too. */
export async function stateOf(first: LabHost): Promise<ClusterState> {
  const kubectl = "/usr/local/bin/kubectl --cache-dir /run/bench-kubectl --kubeconfig /etc/kubernetes/admin.conf";
  await labExec(first, `${kubectl} wait pods --all -A --for=condition=Ready --timeout=180s`);
  return stateIn((await labExec(first, `${kubectl} get nodes,pods -A -o json`)).stdout);
}
