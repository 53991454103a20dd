import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { osProfile } from "../../provider/os";
import type { Asked } from "../../resources/preflight/asked";
import type { Row } from "../../resources/preflight/checks";
import { judgeHost } from "../../resources/preflight/judge";
import type { Check } from "../../resources/preflight/names";
import type { Seen } from "../../resources/preflight/seen";
import { judgeTogether, median, type HostResult } from "../../resources/preflight/together";

const os = (id: string, version: string) =>
  osProfile(`ID=${id}\nVERSION_ID="${version}"\nPRETTY_NAME="${id} ${version}"\n`);

const seen: Seen = {
  os: os("debian", "12"),
  ahead: [-0.1, 0.1],
  hostname: "m1",
  loopback: [],
  rewritten: false,
  later: [],
  timekeepers: ["chronyd"],
  kernel: "6.1.0-18-amd64",
  arch: "amd64",
  cpus: 4,
  memoryMiB: 7900,
  swap: [],
  cgroup: "v2",
  controllers: ["cpuset", "cpu", "io", "memory", "pids"],
  modules: { overlay: "loaded", br_netfilter: "there" },
  uuid: "a",
  macs: ["02:00:00:00:00:01"],
  units: [],
  binaries: [],
  left: [],
  besidesEtcd: [],
  ledger: [],
  places: [],
  advertised: [],
  sockets: [{ protocol: "tcp", port: 22, program: "sshd", pid: 1 }],
  nameservers: ["192.0.2.53"],
  answering: ["192.0.2.53"],
  firewall: [],
  zone: "Etc/UTC",
  zoneKnown: "yes",
  room: [{ path: "/var/lib/etcd", mount: "/var", freeGiB: 50 }],
  writes: Array.from({ length: 200 }, () => 0.002),
  reached: new Map(),
  canProbe: true,
};

const asked: Asked = {
  roles: ["master", "etcd"],
  cluster: true,
  version: "v1.35.4",
  kubeadm: true,
  runtime: "containerd",
  existingRuntime: "refuse",
  leftovers: "refuse",
  cgroupV1: false,
  nftables: false,
  modules: ["overlay", "br_netfilter"],
  ports: ["6443/tcp", "2379-2380/tcp", "8472/udp"],
  disk: { "/var/lib/etcd": 4 },
  etcdDir: "/var/lib/etcd",
  etcdDirShared: false,
  reach: [],
  moreDns: false,
  ipv6: false,
  selinux: "permissive",
  firewall: "open",
  ignore: [],
};

const thing = (name: string, path: string, version = "") => ({ name, path, version });
const writes = (slow: number, ms: number) => [
  ...Array.from({ length: 200 - slow }, () => 0.001),
  ...Array.from({ length: slow }, () => ms / 1000),
];
const listens = (port: number, protocol = "tcp", program?: string): Partial<Seen> => ({
  sockets: [{ protocol, port, ...(program !== undefined && { program, pid: 7 }) }],
});
const room = (path: string, mount: string, freeGiB: number) => ({ path, mount, freeGiB });
const runtime = { binaries: [thing("containerd", "/usr/bin/containerd", "containerd 1.7.2")] };
const oldNode = { left: ["/etc/kubernetes/admin.conf", "/var/lib/etcd/member"] };
const clean = { leftovers: "clean" } as const;
const ours = (...ledger: string[]) => ({ ledger });

/** Check, what is otherwise on the host, what is otherwise asked, the result (nothing: it does not concern the host). */
const adopts = (runtimeVersion: string) => ({ existingRuntime: "adopt", runtimeVersion }) as const;

const CASES: readonly [Check, Partial<Seen>, Partial<Asked>, Row["result"] | "none", RegExp?][] = [
  ["os", {}, {}, "pass"],
  ["os", { os: os("rocky", "9.4") }, {}, "pass"],
  ["os", { os: os("ubuntu", "24.04") }, {}, "pass"],
  ["os", { os: os("debian", "10") }, {}, "warn", /debian 10: kubexm knows 11, 12, 13/],
  ["os", { os: os("fedora", "42") }, {}, "warn", /no releases/],
  ["os", { os: "operating system Alpine is not of the Debian or RHEL family" }, {}, "fail", /Alpine/],
  ["arch", { arch: "arm64" }, {}, "pass"],
  ["arch", { arch: "riscv64" }, {}, "fail"],
  ["arch", {}, { arch: "arm64" }, "fail", /cluster\.yaml says arm64/],
  ["cpu", { cpus: 2 }, {}, "pass"],
  ["cpu", { cpus: 1 }, {}, "fail", /^1 CPU$/],
  ["cpu", { cpus: 1 }, { roles: ["etcd"] }, "fail"],
  ["cpu", { cpus: 1 }, { roles: ["worker"] }, "pass"],
  ["cpu", { cpus: 1 }, { roles: ["loadbalancer"] }, "pass"],
  ["memory", { memoryMiB: 3700 }, {}, "pass"],
  ["memory", { memoryMiB: 3000 }, {}, "fail", /^2\.9 GiB/],
  ["memory", { memoryMiB: 1900 }, { roles: ["worker"] }, "pass"],
  ["memory", { memoryMiB: 1500 }, { roles: ["worker"] }, "fail"],
  ["memory", { memoryMiB: 1000 }, { roles: ["loadbalancer"] }, "pass"],
  ["disk", {}, {}, "pass"],
  ["disk", { room: [room("/var/lib/etcd", "/", 3)] }, {}, "fail", /3\.0 GiB free on \/, 4 GiB/],
  [
    "disk",
    { room: [room("/a", "/", 5), room("/b", "/", 5)] },
    { disk: { "/a": 3, "/b": 3 } },
    "fail",
    /6 GiB.*\/a, \/b/,
  ],
  ["disk", { room: [room("/a", "/", 5), room("/b", "/b", 5)] }, { disk: { "/a": 3, "/b": 3 } }, "pass"],
  ["disk", { room: [room("/var/lib/etcd", "/", 3)], ...ours("unit kubelet.service") }, {}, "warn"],
  ["disk", { room: [] }, { disk: {} }, "none"],
  ["kernel", { kernel: "5.14.0-362.el9" }, {}, "pass"],
  ["kernel", { kernel: "4.18.0-553.el8" }, {}, "fail", /4\.19/],
  ["kernel", { kernel: "4.18.0-553.el8" }, { kubeadm: false }, "warn"],
  ["kernel", { kernel: "4.18.0-553.el8" }, { version: "v1.31.4" }, "pass"],
  ["kernel", { kernel: "2.6.32" }, { version: "v1.31.4" }, "fail"],
  ["kernel", { kernel: "5.10.0" }, { nftables: true }, "fail", /5\.13/],
  ["modules", {}, {}, "pass"],
  ["modules", { modules: { overlay: "loaded", br_netfilter: "missing" } }, {}, "fail", /no br_netfilter/],
  ["modules", { modules: { overlay: "loaded" } }, {}, "fail", /no br_netfilter/],
  ["modules", { modules: { overlay: "loaded", br_netfilter: "unknown" } }, {}, "warn"],
  ["cgroup", {}, {}, "pass"],
  ["cgroup", { cgroup: "v1" }, {}, "fail", /v1\.35\.4 does not start/],
  ["cgroup", { cgroup: "v1" }, { cgroupV1: true }, "warn"],
  ["cgroup", { cgroup: "v1" }, { version: "v1.34.2" }, "warn", /from 1\.35 on/],
  ["cgroup", { controllers: ["cpu", "pids"] }, {}, "fail", /without memory/],
  ["cgroup", { cgroup: "v1" }, { roles: ["loadbalancer"] }, "none"],
  ["cgroup", { cgroup: "v1" }, { cluster: false }, "none"],
  ["hostname", {}, {}, "pass"],
  ["hostname", { hostname: "My_Box" }, {}, "warn", /My_Box is not a DNS name/],
  ["hostname", { hostname: "" }, {}, "warn"],
  ["hostname", { loopback: ["127.0.1.1"] }, {}, "pass", /127\.0\.1\.1 in \/etc\/hosts/],
  ["hostname", { rewritten: true }, {}, "warn", /cloud-init/],
  [
    "kernel",
    { later: [["/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward", "0"]] },
    {},
    "warn",
    /ip_forward = 0 in/,
  ],
  ["kernel", { later: [["/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward", "1"]] }, {}, "pass"],
  ["kernel", { later: [["/etc/sysctl.d/99-x.conf", "vm.swappiness", "10"]] }, {}, "pass"],
  ["hostname", { loopback: ["127.0.0.1"] }, {}, "warn", /m1 is 127\.0\.0\.1/],
  ["hostname", { loopback: ["127.0.1.1", "::1"] }, {}, "warn", /m1 is ::1/],
  ["time-sync", {}, {}, "pass", /chronyd/],
  ["time-sync", { timekeepers: [] }, {}, "warn"],
  ["time-sync", { timekeepers: ["machine"] }, {}, "pass"],
  ["timezone", {}, {}, "pass"],
  ["timezone", {}, { zone: "Asia/Shanghai" }, "pass"],
  ["timezone", { zoneKnown: "no" }, { zone: "Asia/Nowhere" }, "fail", /Asia\/Nowhere/],
  ["timezone", { zoneKnown: "no-zones" }, { zone: "Asia/Shanghai" }, "warn"],
  ["existing", {}, {}, "pass", /^none$/],
  ["existing", { left: ["/etc/kubernetes/admin.conf"] }, {}, "fail", /admin\.conf/],
  ["existing", { units: [thing("k3s", "/etc/systemd/system/k3s.service")] }, {}, "fail", /k3s/],
  ["existing", { binaries: [thing("etcd", "/usr/bin/etcd", "etcd Version: 3.4.9")] }, {}, "fail", /3\.4\.9/],
  ["existing", runtime, {}, "fail", /containerd 1\.7\.2/],
  ["existing", runtime, { existingRuntime: "adopt" }, "warn"],
  ["existing", runtime, adopts("1.7.28"), "warn"],
  ["existing", runtime, adopts("2.2.7"), "fail", /1\.7\.2\) does not read the configuration of 2\.2\.7/],
  ["existing", runtime, { ...adopts("1.7.2"), version: "v1.36.3" }, "fail", /too old for Kubernetes v1\.36\.3/],
  ["existing", {}, adopts("2.2.7"), "fail", /no containerd/],
  ["existing", { ...runtime, ...ours("unit containerd.service") }, adopts("1.7.2"), "pass"],
  ["existing", runtime, { existingRuntime: "replace" }, "warn"],
  ["existing", runtime, { runtime: "cri-o" }, "warn"],
  ["existing", { places: ["KubernetesNode.prod-w1-node"] }, { place: "KubernetesNode.prod-w1-node" }, "pass"],
  [
    "existing",
    { places: ["KubernetesNode.prod-w1-node"] },
    { place: "KubernetesNode.test-w1-node" },
    "fail",
    /a node of kubexm's already: prod-w1-node/,
  ],
  ["existing", { ...runtime, ...ours("path /usr/local/bin/containerd") }, {}, "pass", /kubexm's own/],
  ["existing", { left: ["/etc/kubernetes/admin.conf"], ...ours("package socat", "member") }, {}, "fail"],
  [
    "existing",
    { left: ["/etc/kubernetes/admin.conf", "/var/lib/etcd/member"], ...ours("unit kubelet.service") },
    {},
    "pass",
  ],
  ["existing", { left: ["/etc/kubernetes/admin.conf"] }, { cluster: false }, "none"],
  ["existing", oldNode, clean, "warn", /admin\.conf, \/var\/lib\/etcd\/member/],
  ["existing", { left: ["/etc/cni/net.d/10-calico.conflist"] }, clean, "warn", /10-calico/],
  ["existing", { units: [thing("kubelet", "/etc/systemd/system/kubelet.service")] }, clean, "warn"],
  ["existing", { units: [thing("kubelet", "/usr/lib/systemd/system/kubelet.service")] }, clean, "fail"],
  ["existing", { units: [thing("k3s", "/etc/systemd/system/k3s.service")] }, clean, "fail", /k3s/],
  ["existing", { left: ["/etc/kubernetes/admin.conf", "/var/lib/rancher"] }, clean, "fail", /^\/var\/lib\/rancher$/],
  ["existing", { binaries: [thing("etcd", "/usr/bin/etcd", "3.4.9")] }, clean, "fail", /3\.4\.9/],
  [
    "existing",
    { ...oldNode, ...runtime },
    clean,
    "fail",
    /^\/usr\/bin\/containerd \(containerd: containerd 1\.7\.2\)$/,
  ],
  ["existing", { ...oldNode, ...runtime }, { ...clean, existingRuntime: "adopt" }, "warn", /admin\.conf.*containerd/],
  ["existing", { ...oldNode, ...runtime }, { existingRuntime: "adopt" }, "fail", /admin\.conf, [^ ]*member$/],
  [
    "existing",
    { besidesEtcd: ["lost+found", "my data"] },
    { etcdDir: "/data" },
    "fail",
    /^\/data, .* holds lost\+found, my data$/,
  ],
  ["existing", { besidesEtcd: ["lost+found"] }, { etcdDir: "/data", etcdDirShared: true }, "pass"],
  ["existing", { besidesEtcd: ["x"], ...ours("member", "unit kubelet.service") }, { etcdDir: "/data" }, "pass"],
  ["ports", {}, {}, "pass"],
  ["ports", listens(6443, "tcp", "nginx"), {}, "fail", /6443\/tcp by nginx \(PID 7\)/],
  ["ports", listens(2380, "tcp", "etcd"), {}, "fail", /by etcd/],
  ["ports", listens(6443, "udp", "nginx"), {}, "pass"],
  ["ports", listens(8472, "udp"), {}, "fail", /8472\/udp by the kernel/],
  ["ports", { ...listens(8472, "udp"), ...ours("unit kubelet.service") }, {}, "pass"],
  ["ports", { ...listens(6443, "tcp", "kube-apiserver"), ...ours("unit kubelet.service") }, {}, "pass"],
  ["ports", { ...listens(6443, "tcp", "nginx"), ...ours("path /etc/hosts") }, {}, "fail"],
  ["ports", { ...listens(6443, "tcp", "python3"), ...ours("unit kubelet.service") }, {}, "fail", /python3/],
  ["ports", listens(6443, "tcp", "nginx"), { ports: [] }, "none"],
  ["dns", {}, {}, "pass"],
  ["dns", { nameservers: [], answering: [] }, {}, "fail", /names no DNS server/],
  ["ipv6-route", { advertised: ["eth0"] }, { ipv6: true }, "fail", /eth0/],
  ["ipv6-route", {}, { ipv6: true }, "pass"],
  ["dns", { nameservers: [], answering: [] }, { moreDns: true }, "warn"],
  ["dns", { answering: [] }, {}, "fail", /192\.0\.2\.53/],
  ["dns", { answering: [] }, { moreDns: true }, "warn"],
  ["dns", { answering: [], canProbe: false }, {}, "pass"],
  ["etcd-disk", {}, {}, "pass", /within 2\.0 ms/],
  ["etcd-disk", { writes: writes(2, 500) }, {}, "pass"],
  ["etcd-disk", { writes: writes(3, 50) }, {}, "warn", /within 50\.0 ms/],
  ["etcd-disk", { writes: writes(3, 500) }, {}, "fail"],
  ["etcd-disk", { writes: [] }, {}, "none"],
  ["swap", {}, {}, "pass"],
  ["swap", { swap: ["/dev/dm-1"] }, {}, "warn", /\/dev\/dm-1/],
  ["selinux", {}, {}, "pass", /off/],
  ["selinux", { selinux: "permissive" }, {}, "pass"],
  ["selinux", { selinux: "enforcing" }, {}, "warn"],
  ["selinux", { selinux: "enforcing" }, { selinux: "enforcing" }, "pass"],
  ["firewall", {}, {}, "pass"],
  ["firewall", { firewall: ["firewalld"] }, {}, "warn", /firewalld runs/],
  ["firewall", { firewall: ["ufw"] }, { firewall: "disable" }, "warn"],
  ["firewall", { iptables: "-P INPUT DROP" }, {}, "warn", /no firewalld or ufw wrote: -P INPUT DROP/],
  ["firewall", { iptables: "-P INPUT DROP", firewall: ["nftables"] }, {}, "warn", /-P INPUT DROP/],
  ["firewall", { iptables: "-P INPUT DROP", firewall: ["ufw"] }, {}, "warn", /^ufw runs$/],
];

describe("one host by itself", () => {
  for (const [check, other, more, result, found] of CASES)
    test(`${check}: ${result} with ${JSON.stringify({ ...other, ...more }).slice(0, 100)}`, () => {
      const row = judgeHost("m1", { ...seen, ...other }, { ...asked, ...more }).find((one) => one.check === check);
      assert.equal(row?.result ?? "none", result, row?.found);
      if (found) assert.match(row?.found ?? "", found);
      if (result === "warn" || result === "fail") assert.ok((row?.fix ?? "").length > 10, "what to do about it");
    });

  test("what cannot be told for want of ss is a warning", () => {
    const blind: Seen = { ...seen };
    Reflect.deleteProperty(blind, "sockets");
    const row = judgeHost("m1", blind, asked).find(({ check }) => check === "ports");
    assert.equal(row?.result, "warn");
  });

  test("what is left of another cluster: what becomes of it is said as it is", () => {
    const fixOf = (left: string[], more: Partial<Asked>) =>
      judgeHost("m1", { ...seen, left }, { ...asked, ...more }).find(({ check }) => check === "existing")?.fix ?? "";
    const all = [...oldNode.left, "/etc/cni/net.d/10-calico.conflist"];
    assert.match(fixOf(all, clean), /removed for good, .*net\.d is set aside, and comes back with destroy \(/);
    assert.match(
      fixOf(["/var/lib/etcd/member"], { ...clean, etcdDir: "/data/etcd" }),
      /^nothing: what no node .* stays/,
    );
    assert.match(fixOf(all, {}), /or write kubernetes\.leftovers: clean$/);
    assert.doesNotMatch(fixOf([...all, "/var/lib/k0s"], {}), /leftovers: clean/);
  });

  test("a failure that is ignored is a warning, and says so", () => {
    const rows = judgeHost("m1", { ...seen, cpus: 1 }, { ...asked, ignore: ["cpu"] });
    const row = rows.find(({ check }) => check === "cpu");
    assert.equal(row?.result, "warn");
    assert.match(row.found, /ignored as asked/);
  });
});

const result = (host: string, more: Partial<HostResult> = {}): HostResult => ({
  host,
  seen: true,
  at: 1000,
  ahead: [-0.2, 0.2],
  hostname: host,
  uuid: `uuid-${host}`,
  macs: [`mac-${host}`],
  zone: "Etc/UTC",
  zoneGiven: false,
  firewall: [],
  unreached: [],
  ignore: [],
  passed: 0,
  rows: [],
  ...more,
});
const unreached = (host: string, more: object = {}) => [
  { host, port: 6443, how: "no-answer" as const, answers: false, ...more },
];

/** What is otherwise with c of the hosts a, b and c; with b. */
const TOGETHER: readonly [Check, Partial<HostResult>, Partial<HostResult>, Row["result"] | "none", RegExp?][] = [
  ["clock", {}, {}, "pass"],
  ["clock", { ahead: [6, 6.4] }, {}, "fail", /6\.2 s before/],
  ["clock", { ahead: [-9, -8.6] }, {}, "fail", /8\.8 s behind/],
  // A slow way to the host is no difference of its clock.
  ["clock", { ahead: [-20, 0.1] }, {}, "pass"],
  ["clock", { ahead: [600, 600.1] }, { ahead: [600, 600.1] }, "pass"],
  // Looked at on another day, perhaps from another machine.
  ["clock", { ahead: [60, 60.1], at: 100_000 }, {}, "pass"],
  ["clock", { ahead: [6, 6.4], ignore: ["clock"] }, {}, "warn"],
  ["clock", { seen: false }, {}, "none"],
  ["hostname", {}, {}, "none"],
  ["hostname", { hostname: "b" }, {}, "fail", /calls itself b, which is another host/],
  ["hostname", { hostname: "debian" }, { hostname: "debian" }, "warn", /b calls itself debian too/],
  ["product-uuid", {}, {}, "pass"],
  ["product-uuid", { uuid: "uuid-b" }, {}, "fail", /uuid-b is that of b too/],
  ["product-uuid", { uuid: "" }, { uuid: "" }, "none"],
  ["mac", {}, {}, "pass"],
  ["mac", { macs: ["x", "mac-b"] }, {}, "fail", /mac-b is that of b too/],
  ["mac", { macs: [] }, { macs: [] }, "none"],
  ["timezone", {}, {}, "none"],
  ["timezone", { zone: "Asia/Tokyo" }, {}, "warn", /unlike other hosts/],
  ["timezone", { zone: "Asia/Tokyo", zoneGiven: true }, {}, "none"],
  ["reachability", {}, {}, "pass"],
  ["reachability", { unreached: unreached("b") }, {}, "fail", /b:6443 \(no answer/],
  ["reachability", { unreached: unreached("b") }, { firewall: ["ufw"] }, "warn"],
  ["reachability", { unreached: unreached("b", { answers: true, how: "closed" }) }, { firewall: ["ufw"] }, "fail"],
  ["reachability", { unreached: unreached("b"), ignore: ["reachability"] }, {}, "warn"],
];

describe("hosts beside each other", () => {
  for (const [check, other, more, wanted, found] of TOGETHER)
    test(`${check}: ${wanted} with ${JSON.stringify([other, more])}`, () => {
      const rows = judgeTogether([result("a"), result("b", more), result("c", other)]);
      const row = rows.find((one) => one.host === "c" && one.check === check);
      assert.equal(row?.result ?? "none", wanted, row?.found);
      if (found) assert.match(row?.found ?? "", found);
    });

  test("the others are content when one clock is wrong", () => {
    const rows = judgeTogether([result("a"), result("b"), result("c", { ahead: [600, 600] })]);
    assert.deepEqual(
      rows.filter(({ check, result: how }) => check === "clock" && how === "fail").map(({ host }) => host),
      ["c"],
    );
  });
  test("nobody to compare with", () => assert.deepEqual(judgeTogether([]), []));
  test("median", () => assert.deepEqual([median([3, 1, 2]), median([4, 1]), median([])], [2, 2.5, 0]));
});
