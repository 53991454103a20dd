import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSpec } from "../../resources/config/index";
import { pathText } from "../../resources/config/problems";
import { RULES } from "../../resources/config/rules";

type Tree = Record<string, unknown>;

const hosts = (...names: string[]) => names.map((name, i) => ({ name, address: `192.0.2.${i + 1}` }));

const base: Tree = {
  hosts: hosts("m1", "w1"),
  roleGroups: { master: ["m1"], worker: ["w1"] },
  kubernetes: { version: "v1.35.4" },
};

const three: Tree = { hosts: hosts("m1", "m2", "m3"), roleGroups: { master: ["m[1:3]"] } };
const balanced = { internalLoadbalancer: "haproxy" };
const two = (first: Tree, second: Tree) => ({
  hosts: [
    { ...hosts("m1")[0], ...first },
    { ...hosts("m1", "w1")[1], ...second },
  ],
});
const kubernetes = (more: Tree): Tree => ({ kubernetes: { version: "v1.35.4", ...more } });
const etcd = (more: Tree): Tree => ({ etcd: more });
const runtime = (version: string, containerd: string) =>
  kubernetes({ version, containerRuntime: { version: containerd } });
const dual = (v6Services: string): Tree => ({
  hosts: [{ ...hosts("m1")[0], internalAddress: "192.0.2.1,2001:db8::1" }],
  roleGroups: { master: ["m1"] },
  network: { kubePodsCIDR: "10.0.0.0/16,fd00::/112", kubeServiceCIDR: `10.1.0.0/16,${v6Services}` },
});

const single = (internalAddress: string, kubeServiceCIDR: string): Tree => ({
  hosts: [{ ...hosts("m1")[0], internalAddress }],
  roleGroups: { master: ["m1"] },
  network: { kubePodsCIDR: kubeServiceCIDR.includes(":") ? "fd00::/112" : "10.0.0.0/16", kubeServiceCIDR },
});

/** Rule, what is changed in a sound cluster, where the fault is then told of (nothing: nowhere), what the message says. */
const CASES: [string, Tree, string | undefined, RegExp?][] = [
  ["not-built", { network: { plugin: "calico" } }, "network.plugin", /makes flannel/],
  ["not-built", { network: { plugin: "calico" }, kubernetes: { type: "none" } }, undefined],
  ["range", { roleGroups: { master: ["m1"], worker: ["w[2:1]"] } }, "roleGroups.worker[0]", /write \[1:2\]/],
  ["range", { roleGroups: { master: ["m1"], worker: ["w[1-2]"] } }, "roleGroups.worker[0]", /write for example/],
  ["range", { roleGroups: { master: ["m1"], worker: ["w[1:99999999]"] } }, "roleGroups.worker[0]", /smaller/],
  ["unknown-host", { roleGroups: { master: ["m1"], worker: ["w[1:3]"] } }, "roleGroups.worker[0]", /^w2, w3 are not/],
  ["unknown-host", { roleGroups: { master: ["m1"], worker: ["W1"] } }, "roleGroups.worker[0]", /write w1/],
  ["listed-twice", { roleGroups: { master: ["m1"], worker: ["w1", "w[1:1]"] } }, "roleGroups.worker[1]", /w1 stands/],
  ["host-name-twice", two({}, { name: "m1" }), "hosts[1].name", /the name m1 belongs to another host already/],
  ["host-address-twice", two({}, { address: "192.0.2.1" }), "hosts[1].address", /belongs to m1/],
  [
    "host-address-twice",
    two({ internalAddress: "10.9.0.1" }, { address: "192.0.2.1", port: 2222, internalAddress: "10.9.0.2" }),
    undefined,
  ],
  [
    "host-address-twice",
    two({}, { address: "192.0.2.1", bastions: [{ address: "198.51.100.1" }], internalAddress: "10.9.0.2" }),
    undefined,
  ],
  ["internal-address-twice", two({}, { address: "192.0.2.1", port: 2222 }), "hosts[1].address", /192\.0\.2\.1/],
  ["internal-address-twice", two({}, { internalAddress: "192.0.2.1" }), "hosts[1].internalAddress", /192\.0\.2\.1/],
  ["node-address", two({ address: "db.example.com" }, {}), "hosts[0].address", /write the host's in internalAddress/],
  ["node-address", two({ address: "db.example.com", internalAddress: "192.0.2.9" }, {}), undefined],
  ["node-address", { ...two({ address: "db.example.com" }, {}), kubernetes: { type: "none" } }, undefined],
  ["host-without-role", { roleGroups: { master: ["m1"] } }, "hosts[1].name"],
  ["host-without-role", { roleGroups: { master: ["m1"], etcd: ["m1", "w1"] } }, undefined],
  ["master-required", { roleGroups: { worker: ["m1", "w1"] } }, "roleGroups.master"],
  [
    "even-masters",
    { roleGroups: { master: ["m1", "w1"] }, controlPlaneEndpoint: balanced },
    "roleGroups.master",
    /1 or 3/,
  ],
  ["even-masters", { ...three, controlPlaneEndpoint: balanced }, undefined],
  ["even-etcd", { roleGroups: { master: ["m1"], etcd: ["m1", "w1"] }, ...etcd({ type: "kubexm" }) }, "roleGroups.etcd"],
  ["registry-host", { roleGroups: { master: ["m1"], registry: ["m1", "w1"] } }, "roleGroups.registry", /not 2/],
  [
    "registry-unused",
    { registry: { type: "external", privateRegistry: "harbor.example.com" } },
    "registry.privateRegistry",
    /write mirrors\.images/,
  ],
  [
    "registry-unused",
    { roleGroups: { master: ["m1"], registry: ["w1"] }, registry: { privateRegistry: "harbor.example.com" } },
    undefined,
  ],
  ["registry-host", { roleGroups: { master: ["m1"], registry: ["w1"] } }, "registry.privateRegistry", /needs a domain/],
  [
    "registry-host",
    { roleGroups: { master: ["m1"], registry: ["w1"] }, registry: { type: "external" } },
    "roleGroups.registry",
  ],
  [
    "registry-host",
    { roleGroups: { master: ["m1"], registry: ["w1"] }, registry: { privateRegistry: "r.example.com" } },
    undefined,
  ],
  [
    "loadbalancer-hosts",
    { controlPlaneEndpoint: { externalLoadBalancer: "kubexm", lb_address: "192.0.2.9" } },
    "roleGroups.loadbalancer",
    /needs hosts/,
  ],
  [
    "loadbalancer-hosts",
    {
      roleGroups: { master: ["m1"], loadbalancer: ["w1"] },
      controlPlaneEndpoint: { externalLoadBalancer: "external", lb_address: "192.0.2.9" },
    },
    "roleGroups.loadbalancer",
  ],
  [
    "loadbalancer-hosts",
    { roleGroups: { master: ["m1"], loadbalancer: ["w1"] } },
    "roleGroups.loadbalancer",
    /is empty/,
  ],
  ["control-plane-endpoint", three, "controlPlaneEndpoint.internalLoadbalancer", /3 masters/],
  ["control-plane-endpoint", base, undefined],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { internalLoadbalancer: "kube-vip" } },
    "controlPlaneEndpoint.lb_address",
    /kube-vip is missing/,
  ],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { internalLoadbalancer: "kube-vip", lb_address: "192.0.2.2" } },
    "controlPlaneEndpoint.lb_address",
    /belongs to w1/,
  ],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { externalLoadBalancer: "external" } },
    "controlPlaneEndpoint.lb_address",
    /external load balancer is missing/,
  ],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { externalLoadBalancer: "external", externalDNS: true } },
    undefined,
  ],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { externalLoadBalancer: "external", externalDNS: true, lb_address: "192.0.2.9" } },
    "controlPlaneEndpoint.lb_address",
    /must be empty/,
  ],
  [
    "control-plane-endpoint",
    { controlPlaneEndpoint: { externalLoadBalancer: "external", lb_address: "192.0.2.2" } },
    undefined,
  ],
  ["etcd-hosts", etcd({ type: "kubexm" }), "roleGroups.etcd", /needs hosts/],
  ["etcd-hosts", { roleGroups: { master: ["m1"], etcd: ["w1"] } }, "roleGroups.etcd", /every master/],
  ["etcd-hosts", { roleGroups: { master: ["m1"], worker: ["w1"], etcd: ["m1"] } }, undefined],
  [
    "etcd-hosts",
    {
      roleGroups: { master: ["m1"], etcd: ["m1"] },
      ...etcd({ type: "external", external: { endpoints: ["https://192.0.2.8:2379"] } }),
    },
    "roleGroups.etcd",
    /empty list/,
  ],
  ["etcd-hosts", etcd({ type: "external" }), "etcd.external", /addresses/],
  ["etcd-hosts", etcd({ external: { endpoints: ["https://192.0.2.8:2379"] } }), "etcd.external", /not used/],
  [
    "etcd-hosts",
    etcd({ type: "external", external: { endpoints: ["https://192.0.2.8:2379"], keyFile: "k" } }),
    "etcd.external",
    /both or none/,
  ],
  ["etcd-hosts", etcd({ heartbeatInterval: 1001 }), "etcd.electionTimeout", /write 5005/],
  ["hosts-records", { host: "bhy.example.com 192.0.2.7" }, "host", /bhy\.example\.com is not/],
  ["hosts-records", { dns: { dnsEtcHosts: "192.0.2.7\n" } }, "dns.dnsEtcHosts"],
  ["hosts-records", { host: "192.0.2.7 bhy.example.com" }, undefined],
  ["hosts-records", { host: "192.0.2.7 db_1" }, "host", /^db_1 is not/],
  ["cidr-start", { network: { kubePodsCIDR: "10.233.70.0/18" } }, "network.kubePodsCIDR", /write 10\.233\.64\.0\/18/],
  ["cidr-overlap", { network: { kubeServiceCIDR: "10.233.96.0/20" } }, "network.kubeServiceCIDR", /10\.233\.64\.0\/18/],
  ["host-in-cidr", { network: { kubePodsCIDR: "192.0.0.0/16" } }, "hosts[0].address", /range of the pods/],
  [
    "host-in-cidr",
    { controlPlaneEndpoint: { internalLoadbalancer: "kube-vip", lb_address: "10.233.1.1" } },
    "controlPlaneEndpoint.lb_address",
    /services/,
  ],
  [
    "cidr-families",
    { network: { kubePodsCIDR: "10.0.0.0/16,fd00::/112" } },
    "network.kubeServiceCIDR",
    /same families/,
  ],
  [
    "host-families",
    { ...dual("fd01::/112"), ...two({}, {}), roleGroups: base["roleGroups"] },
    "hosts[0].address",
    /no IPv6/,
  ],
  ["host-families", dual("fd01::/112"), undefined],
  ["first-family", dual("fd01::/112"), undefined],
  [
    "first-family",
    { ...dual("fd01::/112"), hosts: [{ ...hosts("m1")[0], internalAddress: "2001:db8::1,192.0.2.1" }] },
    "hosts[0].internalAddress",
    /write IPv4,IPv6/,
  ],
  ["served-family", single("2001:db8::1,192.0.2.1", "10.1.0.0/16"), "hosts[0].internalAddress", /begins with IPv6/],
  ["served-family", single("192.0.2.1,2001:db8::1", "fd01::/112"), "hosts[0].internalAddress", /begins with IPv4/],
  ["served-family", single("192.0.2.1,2001:db8::1", "10.1.0.0/16"), undefined],
  [
    "served-family",
    {
      ...dual("fd01::/112"),
      network: { kubePodsCIDR: "10.0.0.0/16,fd00::/112", kubeServiceCIDR: "fd01::/112,10.1.0.0/16" },
    },
    "hosts[0].internalAddress",
    /kubeServiceCIDR with IPv6/,
  ],
  ["host-families", two({ address: "m1.example.com" }, { address: "w1.example.com" }), undefined],
  [
    "service-cidr-size",
    { network: { kubeServiceCIDR: "10.0.0.0/11", kubePodsCIDR: "10.233.64.0/18" } },
    "network.kubeServiceCIDR",
    /write a prefix of \/12/,
  ],
  ["service-cidr-size", { network: { kubeServiceCIDR: "10.0.0.0/29" } }, "network.kubeServiceCIDR", /\/28/],
  ["service-cidr-size", { network: { kubeServiceCIDR: "10.0.0.0/28" } }, undefined],
  ["service-cidr-size", dual("fd01::/107"), "network.kubeServiceCIDR", /\/108/],
  ["node-cidr", kubernetes({ nodeCidrMaskSize: 17 }), "kubernetes.nodeCidrMaskSize", /larger than all/],
  [
    "node-cidr",
    {
      ...kubernetes({ nodeCidrMaskSize: 25 }),
      network: { kubePodsCIDR: "10.0.0.0/8", kubeServiceCIDR: "172.20.0.0/16" },
    },
    "kubernetes.nodeCidrMaskSize",
    /write 24 or less/,
  ],
  ["node-cidr", kubernetes({ maxPods: 255 }), "kubernetes.maxPods", /254 addresses/],
  ["node-cidr", kubernetes({ maxPods: 254 }), undefined],
  [
    "node-cidr",
    { network: { kubePodsCIDR: "10.233.64.0/24" } },
    "network.kubePodsCIDR",
    /room for 1 nodes, there are 2/,
  ],
  ["node-cidr", { network: { kubePodsCIDR: "10.233.64.0/23" } }, undefined],
  [
    "node-cidr",
    { ...dual("fd01::/112"), ...kubernetes({ nodeCidrMaskSizeIPv6: 64 }) },
    "kubernetes.nodeCidrMaskSizeIPv6",
  ],
  [
    "calico",
    { network: { plugin: "calico", calico: { vxlanMode: "Always" } } },
    "network.calico.vxlanMode",
    /ipipMode is Always/,
  ],
  [
    "calico",
    { network: { plugin: "calico", kubePodsCIDR: "10.0.0.0/22", ippool: { blockSize: 21 } } },
    "network.ippool.blockSize",
  ],
  ["calico", { network: { plugin: "flannel", calico: { vxlanMode: "Always" } } }, undefined],
  ["kubernetes-too-old", kubernetes({ version: "1.30.9" }), "kubernetes.version"],
  ["kubernetes-too-old", kubernetes({ version: "1.33.9" }), "kubernetes.version", /from 1\.34 on/],
  ["kubernetes-too-old", kubernetes({ version: "1.34.0" }), undefined],
  ["kubernetes-too-new", kubernetes({ version: "v1.38.0" }), "kubernetes.version", /up to 1\.37/],
  ["kubernetes-too-new", kubernetes({ version: "v1.37.9" }), undefined],
  ["containerd-too-old", runtime("v1.36.4", "1.7.28"), "kubernetes.containerRuntime.version", /2\.0\.0 or newer/],
  [
    "containerd-too-old",
    kubernetes({ containerRuntime: { containerd: { version: "1.5.0" } } }),
    "kubernetes.containerRuntime.containerd.version",
  ],
  [
    "containerd-too-old",
    kubernetes({ version: "v1.36.4", containerRuntime: { type: "docker", version: "1.7.28" } }),
    undefined,
  ],
  ["containerd-untested", runtime("v1.34.1", "1.7.6"), "kubernetes.containerRuntime.version", /1\.7\.28/],
  ["containerd-untested", runtime("v1.35.4", "2.2.1"), undefined],
  ["containerd-untested", runtime("v1.35.4", "2.3.5"), undefined],
  ["containerd-untested", runtime("v1.36.4", "2.1.9"), "kubernetes.containerRuntime.version", /2\.2\.0, 2\.3\.0/],
  ["containerd-untested", runtime("v1.35.4", "2.0.7"), "kubernetes.containerRuntime.version"],
  [
    "containerd-two-versions",
    kubernetes({ containerRuntime: { version: "2.2.1", containerd: { version: "2.2.0" } } }),
    "kubernetes.containerRuntime.containerd.version",
  ],
  [
    "containerd-two-versions",
    kubernetes({ containerRuntime: { version: "v2.2.1", containerd: { version: "2.2.1" } } }),
    undefined,
  ],
  ["etcd-too-old", etcd({ version: "3.5.23" }), "etcd.version", /3\.5\.24/],
  ["etcd-too-old", etcd({ version: "3.5.24" }), undefined],
  ["etcd-too-old", { ...kubernetes({ version: "1.34.1" }), ...etcd({ version: "3.5.21" }) }, undefined],
  ["etcd-too-old", { ...kubernetes({ version: "1.34.2" }), ...etcd({ version: "3.5.21" }) }, "etcd.version"],
  ["etcd-too-new", etcd({ version: "3.8.0" }), "etcd.version"],
  [
    "network-plugin-version",
    { network: { plugin: "calico", calico: { version: "v3.29.1" } } },
    "network.calico.version",
    /write 3\.31\.x/,
  ],
  ["network-plugin-version", { network: { plugin: "calico", calico: { version: "3.31.3" } } }, undefined],
  ["ipvs-deprecated", kubernetes({ proxyMode: "ipvs" }), "kubernetes.proxyMode", /deprecated/],
  ["ipvs-deprecated", kubernetes({ version: "v1.34.1" }), undefined],
  ["ipvs-deprecated", base, undefined],
  ["nftables-missing", kubernetes({ version: "v1.30.1", proxyMode: "nftables" }), "kubernetes.proxyMode"],
  ["nftables-beta", kubernetes({ version: "v1.32.4", proxyMode: "nftables" }), "kubernetes.proxyMode"],
  ["nftables-beta", kubernetes({ proxyMode: "nftables" }), undefined],
  [
    "ipvs-exclude-cidrs",
    {
      ...kubernetes({ version: "v1.34.1" }),
      controlPlaneEndpoint: { internalLoadbalancer: "kube-vip", lb_address: "192.0.2.9" },
    },
    "kubernetes.kubeProxyConfiguration",
  ],
  [
    "ipvs-exclude-cidrs",
    {
      ...kubernetes({ version: "v1.34.1", kubeProxyConfiguration: { ipvs: { excludeCIDRs: ["192.0.2.0/24"] } } }),
      controlPlaneEndpoint: { internalLoadbalancer: "kube-vip", lb_address: "192.0.2.9" },
    },
    undefined,
  ],
  [
    "feature-gates",
    kubernetes({ featureGates: { TTLAfterFinished: true } }),
    "kubernetes.featureGates.TTLAfterFinished",
    /since 1\.25/,
  ],
  ["feature-gates", kubernetes({ featureGates: { RotateKubeletServerCertificate: true } }), undefined],
  [
    "kubelet-field",
    kubernetes({ kubeletConfiguration: { maxPod: 50 } }),
    "kubernetes.kubeletConfiguration.maxPod",
    /write maxPods$/,
  ],
  [
    "kube-proxy-field",
    kubernetes({ kubeProxyConfiguration: { ofTomorrow: 1 } }),
    "kubernetes.kubeProxyConfiguration.ofTomorrow",
    /unless a newer/,
  ],
];

const found = (change: Tree, name: string) =>
  checkSpec({ ...base, ...change }).problems.filter(({ rule }) => rule === name);

for (const [name, change, path, says] of CASES) {
  const label = path === undefined ? "content" : `${path} ${says?.source ?? ""}`;
  test(`${name}: ${label} ${JSON.stringify(change).slice(0, 120)}`, () => {
    const problems = found(change, name);
    if (path === undefined) return assert.deepEqual(problems, []);
    const problem = problems.find((problem) => pathText(problem.path) === path);
    assert.ok(problem, JSON.stringify(checkSpec({ ...base, ...change }).problems));
    if (says) assert.match(problem.message, says);
    assert.equal(problem.severity, RULES.find((rule) => rule.name === name)?.severity);
  });
}

test("a sound cluster has no problem at all", () => assert.deepEqual(checkSpec(base).problems, []));

test("every rule has a case that breaks it, and says what to write instead", () => {
  const broken = new Set(CASES.filter(([, , path]) => path !== undefined).map(([name]) => name));
  assert.deepEqual(
    RULES.map(({ name }) => name).filter((name) => !broken.has(name)),
    [],
  );
  for (const [name, change] of CASES)
    for (const { message } of found(change, name)) assert.match(message, /write|remove/, message);
});

/** Values that one of the steps would refuse, or a program on the hosts, when half of the work is done. */
const FORMS: [string, Tree, string][] = [
  ["a host name of 64 characters", { hosts: hosts("m".repeat(64), "w1") }, "hosts[0].name"],
  ["a folder that ends in /", etcd({ dataDir: "/data/etcd/" }), "etcd.dataDir"],
  ["a folder with .", { registry: { containerdDataDir: "/data/./x" } }, "registry.containerdDataDir"],
  [
    "a name no certificate can have",
    kubernetes({ apiserverCertExtraSans: ["not a name"] }),
    "kubernetes.apiserverCertExtraSans[0]",
  ],
];

for (const [what, change, path] of FORMS)
  test(`${what} is told of`, () => {
    const paths = checkSpec({ ...base, ...change }).problems.map((problem) => pathText(problem.path));
    assert.ok(paths.includes(path), paths.join());
  });

test("ranges are kept in lower case, as the firewall's step takes them", () => {
  const network = { kubePodsCIDR: "FD00::/112", kubeServiceCIDR: "FD01::/112" };
  const { value } = checkSpec({
    ...base,
    hosts: [{ name: "m1", address: "2001:db8::1" }],
    roleGroups: { master: ["m1"] },
    network,
  });
  assert.equal(value?.network.kubePodsCIDR, "fd00::/112");
});
