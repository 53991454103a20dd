import { UserError } from "../../provider/errors";
import type { Path } from "./problems";
import type { Rule } from "./rule";
import type { ClusterSpec } from "./schema";

/** What the schema knows and this version does not make yet. Half of a cluster would be worse than none. */
const missing: readonly { path: Path; asked: (spec: ClusterSpec) => boolean; instead: string }[] = [
  { path: ["kubernetes", "type"], asked: ({ kubernetes }) => kubernetes.type === "kubexm", instead: "kubeadm" },
  {
    path: ["kubernetes", "containerRuntime", "type"],
    asked: ({ kubernetes }) => kubernetes.containerRuntime.type !== "containerd",
    instead: "containerd",
  },
  { path: ["etcd", "type"], asked: ({ etcd }) => etcd.type !== "kubeadm", instead: "kubeadm" },
  { path: ["network", "plugin"], asked: ({ network }) => network.plugin !== "flannel", instead: "flannel" },
  {
    path: ["controlPlaneEndpoint", "externalLoadBalancer"],
    asked: ({ controlPlaneEndpoint }) => controlPlaneEndpoint.externalLoadBalancer === "kubexm",
    instead: "external with lb_address, or empty",
  },
  {
    path: ["controlPlaneEndpoint", "internalLoadbalancer"],
    asked: ({ controlPlaneEndpoint }) => controlPlaneEndpoint.internalLoadbalancer !== "",
    instead: "empty",
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

export const NOT_BUILT_RULES: readonly Rule[] = [
  {
    name: "not-built",
    severity: "warning",
    check: (spec) =>
      notBuilt(spec).map(({ path, instead }) => ({
        path,
        message: `preview and up refuse it: this version of kubexm makes ${instead}; write that, or kubernetes.type: none`,
      })),
  },
];

export function refuseWhatIsNotBuilt(spec: ClusterSpec): void {
  const found = notBuilt(spec);
  if (found.length === 0) return;
  throw new UserError(
    [
      "cluster.yaml asks for what this version cannot make yet; nothing was changed:",
      ...found.map(({ path, instead }) => `  ${path.join(".")}: this version of kubexm makes ${instead}`),
      "  or write kubernetes.type: none, to have the hosts made ready and no more",
    ].join("\n"),
  );
}
