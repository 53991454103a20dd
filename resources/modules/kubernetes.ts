import * as pulumi from "@pulumi/pulumi";
import { imagesFor, versionsFor } from "../../artifacts";
import { commaParts, hostsOf, isCertificateName, type ClusterHost, type ClusterSpec } from "../config";
import { ClusterDns } from "../cluster-dns";
import { Flannel } from "../flannel";
import { Kubeconfig } from "../kubeconfig";
import { KubernetesNode } from "../kubernetes-node";
import { controlPlaneTaint } from "../kubernetes/kubeadm-config";
import { NodeSettings } from "../node-settings";
import type { ReadyMachine } from "./host";
import type { EquipmentSettings } from "./equipment";
import { controlPlaneOf, kubeletOf, nodeMasks } from "./kubeadm";

/** The cluster itself: first master, further masters one after another, workers side by side. Returns its kubeconfig. */
export function makeKubernetes(machines: readonly ReadyMachine[], settings: EquipmentSettings): pulumi.Output<string> {
  const { cluster, spec, opts } = settings;
  const { masters, workers } = nodesOf(machines, spec);
  const [first, ...others] = masters;
  if (first === undefined) throw new Error("the schema lets no cluster without a master through");

  const group = { masters, controlPlane: controlPlaneFor(masters, settings) };
  const start = makeNode(first, group, settings, []);
  const network = installNetwork(first, settings, start);
  const chain = others.reduce((made, master) => [...made, makeNode(master, group, settings, made.slice(-1))], [start]);
  const working = workers.map((worker) => makeNode(worker, group, settings, [start]));

  const settled = [...masters, ...workers].map((node, i) =>
    settleNode(node, first, cluster, {
      ...opts,
      dependsOn: [network, ...[...chain, ...working].slice(i, i + 1)],
    }),
  );
  if (settled.length > 1)
    new ClusterDns(`${cluster}-dns`, { host: first.host, forget: first.forget }, { ...opts, dependsOn: settled });
  return new Kubeconfig(
    `${cluster}-kubeconfig`,
    { host: first.host, forget: first.forget, server: serverAt(first, spec) },
    { ...opts, dependsOn: settled },
  ).revealed;
}

interface Node extends ReadyMachine {
  about: ClusterHost;
  role: "master" | "worker";
  /** A master that takes pods of the workload too. */
  works: boolean;
}

function nodesOf(machines: readonly ReadyMachine[], spec: ClusterSpec): { masters: Node[]; workers: Node[] } {
  const nodes = (role: "master" | "worker") =>
    hostsOf(spec, role).flatMap((about) => {
      const machine = machines.find(({ host }) => host.name === about.name);
      return machine ? [{ ...machine, about, role, works: machine.roles.includes("worker") }] : [];
    });
  const masters = nodes("master");
  const isMaster = ({ about }: Node) => masters.some((master) => master.about.name === about.name);
  return { masters, workers: nodes("worker").filter((node) => !isMaster(node)) };
}

/** What all masters tell kubeadm. */
function controlPlaneFor(masters: readonly Node[], { cluster, spec, addresses }: EquipmentSettings) {
  return pulumi.all([addresses, pulumi.all(masters.map(({ address }) => address))]).apply(([all, reached]) => {
    // kubeadm adds the addresses that a master has within the cluster.
    const inside = Object.values(all).flatMap(commaParts);
    // What only this machine's ssh_config knows is no name for a certificate.
    const outside = reached.filter((address) => !inside.includes(address) && isCertificateName(address));
    return controlPlaneOf(spec, cluster, sansOf(spec, outside));
  });
}

interface Group {
  masters: readonly Node[];
  controlPlane: ReturnType<typeof controlPlaneFor>;
}

function makeNode(
  node: Node,
  { masters, controlPlane }: Group,
  { cluster, spec, addresses, opts }: EquipmentSettings,
  after: readonly pulumi.Resource[],
): pulumi.Resource {
  const { host, forget, about, role, works, ready } = node;
  const { kubernetes, controlPlaneEndpoint } = spec;
  const first = masters[0]?.about.name;
  const others = masters.filter((master) => master.about.name !== about.name).map((master) => master.host.spec);
  const own = addresses.apply((all) => commaParts(all[about.name] ?? ""));
  return new KubernetesNode(
    `${cluster}-${host.name}-node`,
    {
      host,
      forget,
      name: about.name,
      role,
      tainted: role === "master" && !works,
      first: about.name === first,
      addresses: own,
      endpoint: `${controlPlaneEndpoint.domain}:${controlPlaneEndpoint.port}`,
      port: controlPlaneEndpoint.port,
      masters: others,
      ...(role === "master" && { controlPlane, ...nodeSharesOf(spec) }),
      ...(about.name === first && { endpointAddress: endpointOf(spec, addresses, first) }),
      kubelet: kubeletOf(spec),
      kubeletArgs: kubernetes.kubeletArgs,
      ignorePreflightErrors: kubernetes.ignorePreflightErrors,
      leftovers: kubernetes.leftovers,
      drain: kubernetes.drain,
    },
    { ...opts, dependsOn: [...ready, ...after] },
  );
}

/** Nothing where it is kubeadm's own. */
function nodeSharesOf(spec: ClusterSpec) {
  const masks = nodeMasks(spec).map(({ name, value }) => `${name}=${value}`);
  return masks.length === 0 ? {} : { nodeCidrMaskSize: masks.join(" ") };
}

/** Where the endpoint's name leads to: the load balancer, else the first master. */
const endpointOf = (spec: ClusterSpec, addresses: EquipmentSettings["addresses"], first: string) => {
  const { lb_address: balancer } = spec.controlPlaneEndpoint;
  return balancer === "" ? addresses.apply((all) => all[first] ?? "") : balancer;
};

function sansOf({ kubernetes, controlPlaneEndpoint }: ClusterSpec, more: readonly string[]): string[] {
  const { domain, lb_address: balancer } = controlPlaneEndpoint;
  const all = [domain, balancer, ...more, "localhost", "127.0.0.1", ...kubernetes.apiserverCertExtraSans];
  return [...new Set(all.filter((name) => name !== ""))].sort();
}

function installNetwork(
  first: Node,
  { cluster, spec, opts }: EquipmentSettings,
  start: pulumi.Resource,
): pulumi.Resource {
  const image = (part: string) => imagesFor(versionsFor(spec)).find((name) => name.includes(part)) ?? "";
  return new Flannel(
    `${cluster}-flannel`,
    {
      host: first.host,
      forget: first.forget,
      image: image("/flannel:"),
      cniImage: image("/flannel-cni-plugin:"),
      podCIDR: commaParts(spec.network.kubePodsCIDR),
      backend: spec.network.flannel.backendMode,
    },
    { ...opts, dependsOn: start },
  );
}

/**
 * A master takes pods of the workload only where it is a worker, too. A host may come to that, or cease to be one, at any time,
 * and what is written at the host counts in any case.
 */
export function taintsOf({
  about,
  role,
  works,
}: Pick<Node, "role" | "works"> & { about: Pick<ClusterHost, "taints"> }) {
  const { taints } = about;
  const written = taints.some((taint) => taint.replace(/=[^:]*/, "") === controlPlaneTaint);
  if (role === "worker" || written) return { taints };
  return works ? { taints, without: [controlPlaneTaint] } : { taints: [controlPlaneTaint, ...taints] };
}

function settleNode(node: Node, first: Node, cluster: string, opts: pulumi.CustomResourceOptions) {
  const { name, labels } = node.about;
  const role = node.works ? { "node-role.kubernetes.io/worker": "" } : {};
  return new NodeSettings(
    `${cluster}-${name}-settings`,
    {
      host: first.host,
      forget: first.forget || node.forget,
      node: name,
      labels: { ...role, ...labels },
      ...taintsOf(node),
      network: true,
    },
    opts,
  );
}

/** Where this machine finds the API servers: all of them, or the first master's. */
const serverAt = ({ address }: Node, { controlPlaneEndpoint: { lb_address: balancer, port } }: ClusterSpec) =>
  pulumi
    .output(balancer === "" ? address : balancer)
    .apply((found) => `https://${found.includes(":") ? `[${found}]` : found}:${port}`);
