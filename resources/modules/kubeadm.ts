import { commaParts, type ClusterSpec } from "../config";
import { parseCidr } from "../config/ip";
import { merge } from "../config/merge";

interface Argument {
  name: string;
  value: string;
}

/** `--name=value` as kubeadm takes it. */
const argument = (text: string): Argument => {
  const [, name = "", value = ""] = /^--([^=]+)(?:=(.*))?$/s.exec(text) ?? [];
  return { name, value: value === "" ? "true" : value };
};

const gatesOf = ({ kubernetes }: ClusterSpec): Argument[] => {
  const gates = Object.entries(kubernetes.featureGates).map(([name, on]) => `${name}=${on}`);
  return gates.length === 0 ? [] : [{ name: "feature-gates", value: gates.join(",") }];
};

/** Only what differs from kubeadm's own default is written. */
const component = (extraArgs: readonly Argument[]) => (extraArgs.length === 0 ? {} : { extraArgs });

const DEFAULT_MASK = { 4: 24, 6: 64 } as const;

/** How large a node's share of the pod ranges is, where that is not kubeadm's default. */
export function nodeMasks({ network, kubernetes }: ClusterSpec): Argument[] {
  const ranges = commaParts(network.kubePodsCIDR).flatMap((cidr) => parseCidr(cidr) ?? []);
  const wanted = { 4: kubernetes.nodeCidrMaskSize, 6: kubernetes.nodeCidrMaskSizeIPv6 };
  const dual = ranges.length > 1;
  return ranges
    .filter(({ family }) => wanted[family] !== DEFAULT_MASK[family])
    .map(({ family }) => ({
      name: dual ? `node-cidr-mask-size-ipv${family}` : "node-cidr-mask-size",
      value: String(wanted[family]),
    }));
}

const etcdArguments = ({ etcd }: ClusterSpec): Argument[] =>
  [
    ["heartbeat-interval", etcd.heartbeatInterval],
    ["election-timeout", etcd.electionTimeout],
    ["snapshot-count", etcd.snapshotCount],
    ["auto-compaction-retention", etcd.autoCompactionRetention],
    ["metrics", etcd.metrics],
    ["quota-backend-bytes", etcd.quotaBackendBytes],
    ["max-request-bytes", etcd.maxRequestBytes],
    ["max-snapshots", etcd.maxSnapshots],
    ["max-wals", etcd.maxWals],
    ["log-level", etcd.logLevel],
  ].map(([name, value]) => ({ name: String(name), value: String(value) }));

/** ClusterConfiguration and KubeProxyConfiguration, the same for all masters. */
export function controlPlaneOf(spec: ClusterSpec, name: string, sans: readonly string[]) {
  const { kubernetes, network, controlPlaneEndpoint, etcd } = spec;
  const gates = gatesOf(spec);
  const { domain, port } = controlPlaneEndpoint;
  return {
    cluster: {
      clusterName: name,
      kubernetesVersion: kubernetes.version,
      controlPlaneEndpoint: `${domain}:${port}`,
      networking: {
        podSubnet: commaParts(network.kubePodsCIDR).join(","),
        serviceSubnet: commaParts(network.kubeServiceCIDR).join(","),
        dnsDomain: kubernetes.clusterName,
      },
      apiServer: { certSANs: [...sans], ...component([...kubernetes.apiserverArgs.map(argument), ...gates]) },
      controllerManager: component([...nodeMasks(spec), ...kubernetes.controllerManagerArgs.map(argument), ...gates]),
      scheduler: component([...kubernetes.schedulerArgs.map(argument), ...gates]),
      etcd: {
        local: {
          dataDir: etcd.dataDir,
          extraArgs: etcdArguments(spec),
          ...(etcd.version !== undefined && { imageTag: `${etcd.version}-0` }),
        },
      },
    },
    proxy: merge(
      {
        mode: kubernetes.proxyMode,
        // ipvs reads that of iptables.
        ...(kubernetes.masqueradeAll && {
          [kubernetes.proxyMode === "nftables" ? "nftables" : "iptables"]: { masqueradeAll: true },
        }),
        ...(gates.length > 0 && { featureGates: kubernetes.featureGates }),
      },
      kubernetes.kubeProxyConfiguration,
    ),
  };
}

export const kubeletOf = ({ kubernetes }: ClusterSpec): Record<string, unknown> =>
  merge(
    {
      cgroupDriver: "systemd",
      maxPods: kubernetes.maxPods,
      podPidsLimit: kubernetes.podPidsLimit,
      ...(Object.keys(kubernetes.featureGates).length > 0 && { featureGates: kubernetes.featureGates }),
    },
    kubernetes.kubeletConfiguration,
  );
