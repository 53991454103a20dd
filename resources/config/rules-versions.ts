import { minorOf as lineOf, minors, newestEtcd, older, rowOf, testedContainerd } from "../../artifacts/catalogue";
import type { Path, Severity } from "./problems";
import type { Finding, Rule } from "./rule";
import { minorOf, type ClusterSpec } from "./schema";

const KUBERNETES: Path = ["kubernetes", "version"];

const at = (path: Path, message: string, ...because: Path[]): Finding[] => [
  { path, because: [KUBERNETES, ...because], message },
];

const minor = (spec: ClusterSpec) => minorOf(spec.kubernetes.version);

const outside = (spec: ClusterSpec, wrong: (oldest: string, newest: string, version: string) => string | undefined) => {
  const { version } = spec.kubernetes;
  const [oldest = "", newest = ""] = [minors().at(0), minors().at(-1)];
  const message = rowOf(version) === undefined ? wrong(oldest, newest, version) : undefined;
  return message === undefined ? [] : [{ path: KUBERNETES, message }];
};

const tooOld = (spec: ClusterSpec): Finding[] =>
  outside(spec, (oldest, _, version) =>
    older(version, oldest) ? `Kubernetes is set up from ${oldest} on; write for example v1.35.4` : undefined,
  );

const tooNew = (spec: ClusterSpec): Finding[] =>
  outside(spec, (_, newest, version) =>
    older(newest, version)
      ? `kubexm sets up Kubernetes up to ${newest}; write that, or take a newer kubexm`
      : undefined,
  );

interface Named {
  path: Path;
  version: string;
}

function containerdVersion({ kubernetes: { containerRuntime } }: ClusterSpec): Named | undefined {
  const { type, version, containerd } = containerRuntime;
  const path: Path = ["kubernetes", "containerRuntime"];
  if (type !== "containerd") return undefined;
  if (containerd.version !== undefined)
    return { path: [...path, "containerd", "version"], version: containerd.version };
  return version === undefined ? undefined : { path: [...path, "version"], version };
}

function containerdTooOld(spec: ClusterSpec): Finding[] {
  const found = containerdVersion(spec);
  const least = rowOf(spec.kubernetes.version)?.leastContainerd;
  if (found === undefined || least === undefined || !older(found.version, least)) return [];
  return at(
    found.path,
    `Kubernetes 1.${minor(spec)} does not run on containerd ${found.version}; write ${least} or newer`,
  );
}

function containerdUntested(spec: ClusterSpec): Finding[] {
  const found = containerdVersion(spec);
  const tested = testedContainerd(spec.kubernetes.version);
  if (found === undefined || tested === undefined || containerdTooOld(spec).length > 0) return [];
  const line = tested.find((first) => lineOf(first) === lineOf(found.version));
  const fits = line === undefined ? tested.every((first) => older(first, found.version)) : !older(found.version, line);
  if (fits) return [];
  return at(
    found.path,
    `containerd ${found.version} is not tested with Kubernetes 1.${minor(spec)}; write one of ${tested.join(", ")}, or newer`,
  );
}

function twoVersions({ kubernetes: { containerRuntime } }: ClusterSpec): Finding[] {
  const { type, version, containerd } = containerRuntime;
  if (
    type !== "containerd" ||
    version === undefined ||
    containerd.version === undefined ||
    version === containerd.version
  )
    return [];
  const path: Path = ["kubernetes", "containerRuntime", "containerd", "version"];
  return [
    {
      path,
      because: [["kubernetes", "containerRuntime", "version"]],
      message: `containerRuntime.version is ${version}; write the same, or one of them`,
    },
  ];
}

const etcdRule = (wrong: (version: string, least: string) => string | undefined) => (spec: ClusterSpec) => {
  const { version } = spec.etcd;
  const least = rowOf(spec.kubernetes.version)?.leastEtcd;
  const message = version === undefined || least === undefined ? undefined : wrong(version, least);
  return message === undefined ? [] : at(["etcd", "version"], message);
};

const etcdTooOld = etcdRule((version, least) =>
  older(version, least) ? `is too old for this Kubernetes; write ${least} or newer` : undefined,
);
const etcdTooNew = etcdRule((version) =>
  older(lineOf(newestEtcd()), lineOf(version))
    ? `is newer than kubexm knows; write ${lineOf(newestEtcd())} or older`
    : undefined,
);

/** Kubernetes minors each network plugin's project tests its minors with; what is not named is not judged. */
const PLUGINS: Readonly<Record<"calico" | "cilium", Readonly<Record<string, readonly [number, number]>>>> = {
  calico: { "3.29": [29, 32], "3.31": [32, 35], "3.32": [34, 36], "3.33": [35, 37] },
  cilium: { "1.18": [30, 33] },
};

function plugin(spec: ClusterSpec): Finding[] {
  const { plugin } = spec.network;
  if (plugin === "flannel") return [];
  const { version } = spec.network[plugin];
  const line = version?.split(".").slice(0, 2).join(".") ?? "";
  const [from, to] = PLUGINS[plugin][line] ?? [0, Infinity];
  if (minor(spec) >= from && minor(spec) <= to) return [];
  const fit = Object.entries(PLUGINS[plugin]).find(([, [from, to]]) => minor(spec) >= from && minor(spec) <= to)?.[0];
  const advice = fit === undefined ? "write a version that is, or leave it out" : `write ${fit}.x`;
  return at(
    ["network", plugin, "version"],
    `is tested with Kubernetes 1.${from} to 1.${to}, not with 1.${minor(spec)}; ${advice}`,
    ["network", "plugin"],
  );
}

const IPVS_DEPRECATED = 35;
const NFTABLES_SINCE = 31;
const NFTABLES_DONE = 33;
const MODE: Path = ["kubernetes", "proxyMode"];

const isMode = (mode: string, wrong: (minor: number) => string | undefined) => (spec: ClusterSpec) => {
  const message = spec.kubernetes.proxyMode === mode ? wrong(minor(spec)) : undefined;
  return message === undefined ? [] : at(MODE, message);
};

function excluded(spec: ClusterSpec): Finding[] {
  const { proxyMode, kubeProxyConfiguration } = spec.kubernetes;
  if (proxyMode !== "ipvs" || spec.controlPlaneEndpoint.internalLoadbalancer !== "kube-vip") return [];
  const { ipvs } = kubeProxyConfiguration;
  if (typeof ipvs === "object" && ipvs !== null && "excludeCIDRs" in ipvs) return [];
  const message =
    "with kube-vip and ipvs, kube-proxy takes the virtual address away; write ipvs.excludeCIDRs with the hosts' network";
  return [{ path: ["kubernetes", "kubeProxyConfiguration"], because: [MODE, ["controlPlaneEndpoint"]], message }];
}

/** Gates whose feature is always on, by the minor that no longer knows them: components refuse to start with these. */
const GATES_GONE: Readonly<Record<string, number>> = {
  TTLAfterFinished: 25,
  ExpandCSIVolumes: 27,
  ExpandInUsePersistentVolumes: 27,
  ExpandPersistentVolumes: 27,
  CSIStorageCapacity: 28,
};

function gates(spec: ClusterSpec): Finding[] {
  return Object.keys(spec.kubernetes.featureGates)
    .filter((gate) => minor(spec) >= (GATES_GONE[gate] ?? Infinity))
    .flatMap((gate) =>
      at(
        ["kubernetes", "featureGates", gate],
        `Kubernetes does not know this gate since 1.${GATES_GONE[gate] ?? 0}, and would not start; remove the line`,
      ),
    );
}

const rule = (name: string, severity: Severity, check: Rule["check"]): Rule => ({ name, severity, check });

export const VERSION_RULES: readonly Rule[] = [
  rule("kubernetes-too-old", "error", tooOld),
  rule("kubernetes-too-new", "error", tooNew),
  rule("containerd-too-old", "error", containerdTooOld),
  rule("containerd-untested", "warning", containerdUntested),
  rule("containerd-two-versions", "error", twoVersions),
  rule("etcd-too-old", "error", etcdTooOld),
  rule("etcd-too-new", "warning", etcdTooNew),
  rule("network-plugin-version", "warning", plugin),
  rule(
    "ipvs-deprecated",
    "warning",
    isMode("ipvs", (minor) =>
      minor >= IPVS_DEPRECATED
        ? `ipvs is deprecated since Kubernetes 1.${IPVS_DEPRECATED}; write iptables or nftables`
        : undefined,
    ),
  ),
  rule(
    "nftables-missing",
    "error",
    isMode("nftables", (minor) =>
      minor < NFTABLES_SINCE ? `Kubernetes has nftables since 1.${NFTABLES_SINCE}; write iptables` : undefined,
    ),
  ),
  rule(
    "nftables-beta",
    "warning",
    isMode("nftables", (minor) =>
      minor >= NFTABLES_SINCE && minor < NFTABLES_DONE
        ? `nftables is not final before Kubernetes 1.${NFTABLES_DONE}; write iptables`
        : undefined,
    ),
  ),
  rule("ipvs-exclude-cidrs", "warning", excluded),
  rule("feature-gates", "error", gates),
];
