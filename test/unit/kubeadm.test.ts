import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import type { Definition } from "../../provider/definition";
import { refuseFixed } from "../../provider/lifecycle";
import { ClusterPreflight } from "../../resources/preflight/components";
import { KubernetesNode } from "../../resources/kubernetes-node";
import { initConfiguration, joinConfiguration } from "../../resources/kubernetes/kubeadm-config";
import { parseSpec, type ClusterInput } from "../../resources/config";
import { controlPlaneOf, kubeletOf } from "../../resources/modules/kubeadm";
import { refuseWhatIsNotBuilt } from "../../resources/config";

type Tree = Record<string, unknown>;
const at = (tree: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((node, key) => (node as Tree | undefined)?.[key], tree);

const spec = (more: Partial<ClusterInput> = {}) =>
  parseSpec("test", {
    hosts: [
      { name: "m1", address: "192.0.2.1", internalAddress: "192.0.2.1,2001:db8::1" },
      { name: "w1", address: "192.0.2.2", internalAddress: "192.0.2.2,2001:db8::2" },
    ],
    roleGroups: { master: ["m1"], etcd: ["m1"], worker: ["w1"] },
    ...more,
    kubernetes: { version: "v1.35.4", ...more.kubernetes },
  });

describe("ClusterConfiguration and KubeProxyConfiguration from cluster.yaml", () => {
  const dual = { kubePodsCIDR: "10.244.0.0/16,fd00:10:244::/56", kubeServiceCIDR: "10.96.0.0/16,fd00:10:96::/112" };
  const rows: readonly [what: string, given: Partial<ClusterInput>, path: string, wanted: unknown][] = [
    ["version", {}, "cluster.kubernetesVersion", "v1.35.4"],
    ["endpoint", {}, "cluster.controlPlaneEndpoint", "lb.kubexm.local:6443"],
    [
      "ranges of both families",
      { network: dual, kubernetes: { nodeCidrMaskSizeIPv6: 64 } },
      "cluster.networking.podSubnet",
      dual.kubePodsCIDR,
    ],
    [
      "arguments",
      { kubernetes: { apiserverArgs: ["--v=2", "--profiling"] } },
      "cluster.apiServer.extraArgs",
      [
        { name: "v", value: "2" },
        { name: "profiling", value: "true" },
      ],
    ],
    [
      "a value with = in it",
      { kubernetes: { schedulerArgs: ["--x=a=b"] } },
      "cluster.scheduler.extraArgs",
      [{ name: "x", value: "a=b" }],
    ],
    ["nothing where nothing is asked", {}, "cluster.scheduler", {}],
    [
      "node mask",
      { kubernetes: { nodeCidrMaskSize: 25 } },
      "cluster.controllerManager.extraArgs",
      [{ name: "node-cidr-mask-size", value: "25" }],
    ],
    [
      "node masks of both families",
      { network: dual, kubernetes: { nodeCidrMaskSize: 25, nodeCidrMaskSizeIPv6: 70 } },
      "cluster.controllerManager.extraArgs",
      [
        { name: "node-cidr-mask-size-ipv4", value: "25" },
        { name: "node-cidr-mask-size-ipv6", value: "70" },
      ],
    ],
    [
      "gates of all components",
      { kubernetes: { featureGates: { A: true, B: false } } },
      "cluster.apiServer.extraArgs",
      [{ name: "feature-gates", value: "A=true,B=false" }],
    ],
    ["gates of kube-proxy", { kubernetes: { featureGates: { A: true } } }, "proxy.featureGates", { A: true }],
    ["proxy mode", { kubernetes: { proxyMode: "nftables" } }, "proxy.mode", "nftables"],
    ["masqueradeAll", { kubernetes: { masqueradeAll: true } }, "proxy.iptables", { masqueradeAll: true }],
    [
      "masqueradeAll of nftables",
      { kubernetes: { masqueradeAll: true, proxyMode: "nftables" } },
      "proxy.nftables",
      { masqueradeAll: true },
    ],
    [
      "masqueradeAll beside settings of one's own",
      { kubernetes: { masqueradeAll: true, kubeProxyConfiguration: { iptables: { minSyncPeriod: "1s" } } } },
      "proxy.iptables",
      { masqueradeAll: true, minSyncPeriod: "1s" },
    ],
    [
      "kube-proxy's own settings",
      { kubernetes: { kubeProxyConfiguration: { conntrack: { min: 0 } } } },
      "proxy.conntrack",
      { min: 0 },
    ],
    ["etcd's folder", { etcd: { dataDir: "/data/etcd" } }, "cluster.etcd.local.dataDir", "/data/etcd"],
    ["domain", { kubernetes: { clusterName: "k8s.example" } }, "cluster.networking.dnsDomain", "k8s.example"],
  ];
  for (const [what, given, path, wanted] of rows)
    test(what, () => assert.deepEqual(at(controlPlaneOf(spec(given), "c", ["lb"]), path), wanted));
});

test("kubelet: the schema's settings, and the user's over them", () => {
  const kubelet = kubeletOf(
    spec({ kubernetes: { maxPods: 50, kubeletConfiguration: { failSwapOn: false, maxPods: 60 } } }),
  );
  assert.deepEqual(kubelet, { cgroupDriver: "systemd", maxPods: 60, podPidsLimit: 10000, failSwapOn: false });
});

test("the size of nodes' shares of the pod range is settled with the cluster, whether it was written or not", () => {
  const made = (nodeCidrMaskSize?: string) => ({
    drift: [],
    role: "master",
    ...(nodeCidrMaskSize && { nodeCidrMaskSize }),
  });
  const change = (was?: string, is?: string) => () => {
    refuseFixed(KubernetesNode.definition, made(was), made(is));
  };
  change()();
  change("node-cidr-mask-size=25", "node-cidr-mask-size=25")();
  assert.throws(change(undefined, "node-cidr-mask-size=25"), /nodeCidrMaskSize cannot be changed any more: nodes keep/);
  assert.throws(change("node-cidr-mask-size=25", undefined), /nodeCidrMaskSize cannot be changed any more/);
});

const host = { name: "m1", address: "192.0.2.1" };
const ever = { drift: [], schema: 2, resource: { name: "x", urn: "x" }, host };
/** What is to change of what was made, and the refusal. */
const CHANGES: [string, Definition, Tree, Tree, RegExp?][] = [
  [
    "the first address of a master",
    KubernetesNode.definition,
    { role: "master", addresses: ["192.0.2.1"] },
    { role: "master", addresses: ["198.51.100.1"] },
    /addresses cannot be changed any more: etcd and the API server/,
  ],
  [
    "a further address of a master",
    KubernetesNode.definition,
    { role: "master", addresses: ["192.0.2.1"] },
    { role: "master", addresses: ["192.0.2.1", "2001:db8::1"] },
  ],
  [
    "a worker's address",
    KubernetesNode.definition,
    { role: "worker", addresses: ["a"] },
    { role: "worker", addresses: ["b"] },
  ],
  [
    "all masters",
    ClusterPreflight.definition,
    { masters: ["m1", "m2"] },
    { masters: ["m3"] },
    /none of the masters would stay/,
  ],
  ["Kubernetes off the hosts", ClusterPreflight.definition, { masters: ["m1"] }, { masters: [] }, /with destroy/],
  ["some masters", ClusterPreflight.definition, { masters: ["m1", "m2"] }, { masters: ["m3", "m2"] }],
  ["Kubernetes onto the hosts", ClusterPreflight.definition, { masters: [] }, { masters: ["m1"] }],
  ["a state from before masters were noted", ClusterPreflight.definition, {}, { masters: ["m1"] }],
];

for (const [what, definition, was, is, refused] of CHANGES)
  test(`${what}: ${refused ? "refused" : "may change"} in a running cluster`, () => {
    const change = () => refuseFixed(definition, { ...ever, ...was }, { ...ever, ...is });
    if (refused) assert.throws(change, refused);
    else change();
  });

const documents = (text: string) => parseAllDocuments(text).map((one) => one.toJS() as Tree);

describe("documents for kubeadm", () => {
  const registration = { name: "m1", ignored: ["Mem"] };
  const configuration = controlPlaneOf(spec(), "c", []);
  test("init: one document of each kind, and a taint where no pods are wanted", () => {
    const all = documents(
      initConfiguration({ ...registration, tainted: true, address: "192.0.2.1", port: 6443, configuration }),
    );
    assert.deepEqual(
      all.map(({ kind }) => kind),
      ["InitConfiguration", "ClusterConfiguration", "KubeProxyConfiguration"],
    );
    assert.equal((at(all[0], "nodeRegistration.taints") as unknown[]).length, 1);
    assert.deepEqual(at(all[0], "nodeRegistration.ignorePreflightErrors"), ["Mem"]);
  });
  test("join: a worker has no control plane, a master has; neither text holds a token", () => {
    const join = (local?: { address: string; port: number }) =>
      joinConfiguration({ ...registration, tainted: false, endpoint: "lb:6443", ...(local && { local }) });
    assert.equal(at(documents(join())[0], "controlPlane"), undefined);
    assert.equal(
      at(documents(join({ address: "192.0.2.1", port: 6443 }))[0], "controlPlane.localAPIEndpoint.bindPort"),
      6443,
    );
    assert.match(join(), /token: "@TOKEN@"/);
    assert.deepEqual(at(documents(join())[0], "nodeRegistration.taints"), []);
  });
});

describe("what this version cannot make is refused before anything is changed", () => {
  const rows: readonly [Partial<ClusterInput>, RegExp | undefined][] = [
    [{}, undefined],
    [{ network: { plugin: "calico" } }, /network\.plugin: .* flannel/],
    [{ kubernetes: { type: "kubexm" } }, /kubernetes\.type: .* kubeadm/],
    [{ kubernetes: { containerRuntime: { type: "cri-o" } } }, /containerRuntime\.type/],
    [{ addons: ["metallb"] }, /addons/],
    [{ kubernetes: { type: "none" }, network: { plugin: "calico" } }, undefined],
  ];
  for (const [given, told] of rows)
    test(JSON.stringify(given), () => {
      const act = () => refuseWhatIsNotBuilt(spec(given));
      if (told) assert.throws(act, told);
      else act();
    });
});
