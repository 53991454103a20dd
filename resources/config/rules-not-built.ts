import { UserError } from "../../provider/errors";
import type { Path } from "./problems";
import type { Rule } from "./rule";
import type { ClusterSpec } from "./schema";

interface Missing {
  path: Path;
  asked: (spec: ClusterSpec) => boolean;
  instead: string;
  /** Nothing of Kubernetes can be planned without it; of the others, all but they themselves. */
  basis?: true;
}

/** What the schema knows and this version does not make yet. Half of a cluster would be worse than none. */
const missing: readonly Missing[] = [
  {
    path: ["kubernetes", "type"],
    asked: ({ kubernetes }) => kubernetes.type === "kubexm",
    instead: "kubeadm",
    basis: true,
  },
  {
    path: ["kubernetes", "containerRuntime", "type"],
    asked: ({ kubernetes }) => kubernetes.containerRuntime.type !== "containerd",
    instead: "containerd",
    basis: true,
  },
  { path: ["etcd", "type"], asked: ({ etcd }) => etcd.type !== "kubeadm", instead: "kubeadm", basis: true },
  {
    path: ["network", "plugin"],
    asked: ({ network }) => network.plugin !== "flannel",
    instead: "flannel",
    basis: true,
  },
  {
    path: ["controlPlaneEndpoint", "externalLoadBalancer"],
    asked: ({ controlPlaneEndpoint }) => controlPlaneEndpoint.externalLoadBalancer === "kubexm",
    instead: 'external with lb_address, or none ("")',
  },
  {
    path: ["controlPlaneEndpoint", "internalLoadbalancer"],
    asked: ({ controlPlaneEndpoint }) => controlPlaneEndpoint.internalLoadbalancer !== "",
    instead: 'none ("")',
  },
  { path: ["roleGroups", "registry"], asked: ({ roleGroups }) => roleGroups.registry.length > 0, instead: "no host" },
  { path: ["storage", "openebs"], asked: ({ storage }) => storage.openebs !== undefined, instead: "nothing" },
  {
    path: ["dns"],
    asked: ({ dns: { dnsEtcHosts, coredns, nodelocaldns } }) =>
      dnsEtcHosts !== "" ||
      coredns.additionalConfigs !== "" ||
      coredns.rewriteBlock !== "" ||
      coredns.externalZones.length + coredns.upstreamDNSServers.length + nodelocaldns.externalZones.length > 0,
    instead: "CoreDNS as kubeadm has it",
  },
  {
    path: ["controlPlaneEndpoint", "externalDNS"],
    asked: ({ controlPlaneEndpoint }) => controlPlaneEndpoint.externalDNS,
    instead: "the domain in the hosts files",
  },
  {
    path: ["registry", "namespaceOverride"],
    asked: ({ registry }) => registry.namespaceOverride !== "",
    instead: "upstream's names",
  },
  { path: ["addons"], asked: ({ addons }) => addons.length > 0, instead: "none" },
  { path: ["kubernetes", "kata"], asked: ({ kubernetes }) => kubernetes.kata.enabled, instead: "enabled: false" },
  {
    path: ["kubernetes", "nodeFeatureDiscovery"],
    asked: ({ kubernetes }) => kubernetes.nodeFeatureDiscovery.enabled,
    instead: "enabled: false",
  },
  { path: ["kubernetes", "autoRenewCerts"], asked: ({ kubernetes }) => kubernetes.autoRenewCerts, instead: "false" },
];

const notBuilt = (spec: ClusterSpec) =>
  spec.kubernetes.type === "none" ? [] : missing.filter(({ asked }) => asked(spec));

const RULE = "not-built";

/** A finding that stands between a cluster file and its `up`. */
export const isNotBuilt = ({ rule }: { rule?: string }): boolean => rule === RULE;

export const NOT_BUILT_RULES: readonly Rule[] = [
  {
    name: RULE,
    severity: "warning",
    check: (spec) =>
      notBuilt(spec).map(({ path, instead }) => ({
        path,
        message: `up refuses it, and preview leaves it out: this version of kubexm makes ${instead}; write that, or kubernetes.type: none where no cluster runs yet`,
      })),
  },
];

/** Whether Kubernetes is to come onto the hosts, and this version has what it takes. */
export const makesKubernetes = (spec: ClusterSpec): boolean =>
  spec.kubernetes.type !== "none" && !notBuilt(spec).some(({ basis }) => basis === true);

/** Lines: where what stands, each as its reader knows it. */
export const refusal = (lines: readonly string[]): UserError =>
  new UserError(
    [
      "cluster.yaml asks for what this version cannot make yet; nothing was changed:",
      ...lines.map((line) => `  ${line}`),
      "  or, where no cluster runs yet, write kubernetes.type: none, to have the hosts made ready and no more",
    ].join("\n"),
  );

export function refuseWhatIsNotBuilt(spec: ClusterSpec): void {
  const found = notBuilt(spec);
  if (found.length === 0) return;
  throw refusal(found.map(({ path, instead }) => `${path.join(".")}: this version of kubexm makes ${instead}`));
}

/** What a plan has to say of what is not in it. */
export function leftOut(spec: ClusterSpec): string | undefined {
  const names = notBuilt(spec).map(({ path }) => path.join("."));
  if (names.length === 0) return undefined;
  const what = makesKubernetes(spec) ? "Kubernetes without them" : "hosts made ready for Kubernetes, and no more";
  return `this version does not make these yet: ${names.join(", ")}; what is planned is ${what}, and up refuses as long as they stand there (docs/kubernetes.md)`;
}
