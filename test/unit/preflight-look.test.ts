import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseSpec, type ClusterInput } from "../../resources/config";
import type { Row } from "../../resources/preflight/checks";
import { lookAt, unreachedOf } from "../../resources/preflight/host";
import { CHECKS, type Check } from "../../resources/preflight/names";
import { backwardsOf, questionsFor, reachOf } from "../../resources/preflight/questions";
import { parseSeen, socketOf } from "../../resources/preflight/seen";
import { gravest, inOrder, tableText } from "../../resources/preflight/table";
import { fakeHost } from "../harness/fake-host";

describe("what a host says", () => {
  const text = `@time=1000.5
PRETTY_NAME="Debian 12"
ID=debian
VERSION_ID="12"
@hostname=m1
@kernel=6.1.0
@arch=x86_64
@cpus=2
@memoryKiB=4194304
@limit=9223372036854771712
@limit=536870912
@swap=/dev/sda2
@cgroup=v1
@controllers=cpu
@controllers=memory
@module=overlay loaded
@uuid=ABC
@mac=02:00:00:00:00:01
@mac=02:00:00:00:00:01
@mac=00:00:00:00:00:00
@binary=kubelet /usr/bin/kubelet Kubernetes v1.30.1
@left=/etc/kubernetes/admin.conf
tcp   LISTEN 0      4096               *:10250            *:*    users:(("kubelet",pid=812,fd=11))
udp   UNCONN 0      0            0.0.0.0:8472       0.0.0.0:*
@nameserver=192.0.2.53
@answers=192.0.2.53
@enforce=1
@zone=/usr/share/zoneinfo/Etc/UTC
@active=nftables
@active=chronyd
@loopback=127.0.1.1
@ufw=on
@path=/var/lib/etcd
@room=1048576 /var
@write=0.0012
@reach=m2 6443 closed
@end=.
`;
  test("is read", () => {
    const read = parseSeen(text, { sent: 1000, came: 1001 });
    assert.deepEqual(read.ahead, [-0.5, 0.5]);
    assert.equal(read.memoryMiB, 512);
    assert.deepEqual(read.macs, ["02:00:00:00:00:01"]);
    assert.deepEqual(read.controllers, ["cpu", "memory"]);
    assert.deepEqual(read.binaries, [{ name: "kubelet", path: "/usr/bin/kubelet", version: "Kubernetes v1.30.1" }]);
    assert.deepEqual(read.sockets, [
      { protocol: "tcp", port: 10250, program: "kubelet", pid: 812 },
      { protocol: "udp", port: 8472 },
    ]);
    assert.deepEqual(read.room, [{ path: "/var/lib/etcd", mount: "/var", freeGiB: 1 }]);
    assert.deepEqual(read.firewall, ["nftables", "ufw"]);
    assert.deepEqual(read.timekeepers, ["chronyd"]);
    assert.deepEqual(read.loopback, ["127.0.1.1"]);
    assert.equal(read.zone, "Etc/UTC");
    assert.equal(read.selinux, "enforcing");
    assert.equal(read.reached.get("m2:6443"), "closed");
    assert.equal(typeof read.os === "object" && read.os.id, "debian");
  });
  test("and that it broke off is an error, not an answer", () =>
    assert.throws(() => parseSeen(text.replace("@end=.\n", ""), { sent: 0, came: 0 }), /ended early/));
  test("a family nobody knows is said in words", () => {
    const read = parseSeen(text.replace("ID=debian", "ID=alpine"), { sent: 0, came: 0 });
    assert.match(typeof read.os === "string" ? read.os : "", /not of the Debian or RHEL family/);
  });
  test("a line that is no socket", () => assert.equal(socketOf("Netid State"), undefined));

  const reach = [{ host: "m2", address: "192.0.2.2", ports: [6443, 2379], answers: false }];
  const came = (answers: Record<string, "open" | "closed" | "refused-by-firewall">, answered = false) =>
    unreachedOf(
      { reached: new Map(Object.entries(answers)), canProbe: true },
      { reach: reach.map((row) => ({ ...row, answers: answered })) },
    ).map(({ port, how }) => `${port} ${how}`);
  test("a port where nothing listens yet is reached; no answer is none", () => {
    assert.deepEqual(came({ "m2:6443": "closed", "m2:2379": "open" }), []);
    assert.deepEqual(came({ "m2:6443": "refused-by-firewall" }), ["6443 refused-by-firewall", "2379 no-answer"]);
    assert.deepEqual(came({ "m2:6443": "closed", "m2:2379": "open" }, true), ["6443 closed"]);
  });
  test("a host that has no bash cannot try", () =>
    assert.deepEqual(unreachedOf({ reached: new Map(), canProbe: false }, { reach }), []));
});

describe("what is asked of a host", () => {
  const cluster = (more: Partial<ClusterInput> = {}) =>
    parseSpec("test", {
      hosts: [
        { name: "m1", address: "192.0.2.1" },
        { name: "m2", address: "192.0.2.2", ignorePreflight: ["memory"] },
        { name: "m3", address: "192.0.2.3" },
        { name: "w1", address: "192.0.2.4" },
      ],
      roleGroups: { master: ["m[1:3]"], etcd: ["m[1:3]"], worker: ["w1"] },
      kubernetes: { type: "kubexm", version: "v1.35.4" },
      controlPlaneEndpoint: { internalLoadbalancer: "haproxy" },
      ...more,
    });

  test("a worker must reach the masters, etcd its like, and the first master everybody", () => {
    const to = (rows: readonly { host: string; ports: number[] }[]) =>
      rows.map(({ host, ports }) => `${host} ${ports.join(" ")}`);
    assert.deepEqual(to(reachOf(cluster(), "w1")), ["m1 6443", "m2 6443", "m3 6443"]);
    assert.deepEqual(to(reachOf(cluster(), "m1")), ["m2 6443 2379 2380", "m3 6443 2379 2380"]);
    const { from, to: all } = backwardsOf(cluster());
    assert.equal(from, "m1");
    assert.deepEqual(to(all), ["m2 10250", "m3 10250", "w1 10250"]);
  });
  test("another worker changes nothing of what the others are asked", () => {
    const grown = cluster({
      hosts: [...cluster().hosts, { name: "w2", address: "192.0.2.5" }],
      roleGroups: { master: ["m[1:3]"], etcd: ["m[1:3]"], worker: ["w[1:2]"] },
    });
    for (const name of ["m1", "m2", "w1"]) {
      assert.deepEqual(questionsFor(grown, name), questionsFor(cluster(), name));
      assert.deepEqual(reachOf(grown, name), reachOf(cluster(), name));
    }
  });
  test("checks are ignored for a host, or for all", () => {
    const spec = cluster({ ignorePreflight: ["cpu"] });
    assert.deepEqual(questionsFor(spec, "m2").ignore, ["cpu", "memory"]);
    assert.deepEqual(questionsFor(spec, "m1").ignore, ["cpu"]);
  });
  test("etcd's disk is timed where kubexm sets up etcd", () => {
    assert.equal(questionsFor(cluster(), "m1").etcdDir, "/var/lib/etcd");
    assert.equal(questionsFor(cluster(), "w1").etcdDir, undefined);
    assert.equal(questionsFor(cluster(), "m1").disk["/var/lib/etcd"], 4);
  });
  test("kubelet may be told to take cgroup version 1", () => {
    const told = cluster({ kubernetes: { version: "v1.35.4", kubeletConfiguration: { failCgroupV1: false } } });
    assert.equal(questionsFor(told, "m1").cgroupV1, true);
    assert.equal(questionsFor(cluster(), "m1").cgroupV1, false);
  });
  test("hosts that are only made ready are asked for no port, disk or other host", () => {
    const ready = cluster({ kubernetes: { type: "none", version: "v1.35.4" } });
    const { ports, disk, etcdDir, cluster: wanted } = questionsFor(ready, "m1");
    assert.deepEqual([ports, disk, etcdDir, wanted], [[], {}, undefined, false]);
    assert.deepEqual([...reachOf(ready, "m1"), ...backwardsOf(ready).to], []);
  });
  test("an etcd of one's own has to answer", () => {
    const spec = cluster({
      roleGroups: { master: ["m[1:3]"], worker: ["w1"] },
      etcd: { type: "external", external: { endpoints: ["https://192.0.2.77:2379"] } },
    });
    assert.deepEqual(questionsFor(spec, "m1").reach, [
      { host: "192.0.2.77:2379", address: "192.0.2.77", ports: [2379], answers: true },
    ]);
  });
});

test("a slow disk under etcd gets the fewer writes, not more time", async () => {
  const copied = "2300 bytes copied, 0.4 s, 6 kB/s";
  const host = fakeHost({ "etc/resolv.conf": "" }, { dd: `sleep 0.4; echo '${copied}' >&2` });
  try {
    const spec = parseSpec("test", {
      hosts: [{ name: "m1", address: "192.0.2.1" }],
      roleGroups: { master: ["m1"], etcd: ["m1"] },
      kubernetes: { version: "v1.35.4" },
      etcd: { dataDir: "/etc/etcd-data" },
    });
    const { writes } = await lookAt(host.remote, { ...questionsFor(spec, "m1"), reach: [] });
    assert.ok(writes.length >= 1 && writes.length <= 5, `${writes.length} writes of 0.4 s`);
    assert.ok(writes.every((seconds) => seconds === 0.4));
  } finally {
    host.end();
  }
});

const alone = parseSpec("test", {
  hosts: [{ name: "w1", address: "192.0.2.1" }],
  roleGroups: { master: ["w1"] },
  kubernetes: { type: "none" },
});
test("what is otherwise after the next boot: a hosts file by cloud-init, parameters by files that come after ours", async () => {
  const files = {
    "etc/resolv.conf": "",
    "etc/hosts": "# Your system has configured 'manage_etc_hosts' as True.\n127.0.0.1 localhost\n",
    "etc/sysctl.d/10-first.conf": "net.ipv4.ip_forward = 0\n",
    "etc/sysctl.d/99-kubexm-cri.conf": "net.ipv4.ip_forward = 1\n",
    "etc/sysctl.d/99-sysctl.conf": "# net.a = 1\nnet.ipv4.ip_forward=0\nkernel/panic = 5 \n",
    "proc/sys/kernel/hostname": "box\n",
  };
  const host = fakeHost(files, {});
  try {
    const { rewritten, later } = await lookAt(host.remote, { ...questionsFor(alone, "w1"), modules: [] });
    const file = "/etc/sysctl.d/99-sysctl.conf";
    assert.deepEqual(
      [rewritten, later],
      [
        true,
        [
          [file, "net.ipv4.ip_forward", "0"],
          [file, "kernel.panic", "5"],
        ],
      ],
    );
  } finally {
    host.end();
  }
});
test("the host's name among the addresses that only it can reach; a comment is no name", async () => {
  const name = "box";
  const hosts = `127.0.0.1 localhost # ${name}\n127.0.1.1\t${name}.example.com ${name}\n::1 ${name}\n192.0.2.1 ${name}\n`;
  const host = fakeHost({ "etc/resolv.conf": "", "etc/hosts": hosts, "proc/sys/kernel/hostname": `${name}\n` }, {});
  try {
    const { loopback, hostname } = await lookAt(host.remote, { ...questionsFor(alone, "w1"), modules: [] });
    assert.deepEqual([hostname, loopback], [name, ["127.0.1.1", "::1"]]);
  } finally {
    host.end();
  }
});

describe("bare rules of iptables", () => {
  for (const [what, says, wanted] of [
    [
      "of RHEL's iptables-services",
      "-P INPUT ACCEPT\n-A INPUT -i lo -j ACCEPT\n-A INPUT -j REJECT --reject-with x",
      /^-A INPUT -j REJECT/,
    ],
    ["with a policy", "-P INPUT DROP\n-A INPUT -j ACCEPT", /^-P INPUT DROP$/],
    [
      "that keep out one address or port, and Kubernetes' own",
      "-P INPUT ACCEPT\n-A INPUT -s 192.0.2.66/32 -j DROP\n-A INPUT -p tcp -m tcp --dport 113 -j REJECT --reject-with tcp-reset\n-A INPUT -j KUBE-FIREWALL",
      /^$/,
    ],
  ] as const)
    test(what, async () => {
      const text = says.replaceAll("\n", "\\n");
      const iptables = `case $1 in -V) echo 'iptables v1.8.9 (nf_tables)' ;; -S) printf '%b\\n' '${text}' ;; esac`;
      const host = fakeHost({ "etc/resolv.conf": "" }, { iptables });
      try {
        const { iptables: rule } = await lookAt(host.remote, questionsFor(alone, "w1"));
        assert.match(rule ?? "", wanted);
      } finally {
        host.end();
      }
    });
  test("a kernel without rules of the old kind is not asked for them", async () => {
    const host = fakeHost({ "etc/resolv.conf": "" }, { iptables: "echo 'iptables v1.8.4 (legacy)'", grep: "exit 1" });
    try {
      await lookAt(host.remote, questionsFor(alone, "w1"));
      assert.deepEqual(
        host.calls().filter((call) => call.startsWith("iptables")),
        ["iptables -V"],
      );
    } finally {
      host.end();
    }
  });
});

describe("the table", () => {
  const row = (host: string, check: Check, how: Row["result"], found = "x"): Row => ({
    ...{ host, check, result: how, found },
    ...(how !== "pass" && { fix: "do that" }),
  });
  test("has one row a check and host, the gravest", () =>
    assert.deepEqual(gravest([row("a", "os", "pass"), row("a", "os", "fail"), row("a", "os", "warn")]), [
      row("a", "os", "fail"),
    ]));
  test("is in the order of hosts and checks", () =>
    assert.deepEqual(
      inOrder([row("b", "swap", "pass"), row("a", "os", "pass"), row("b", "os", "pass")]).map(
        ({ host, check }) => `${host} ${check}`,
      ),
      ["b os", "b swap", "a os"],
    ));
  test("says failures first, and what many hosts have in common once", () => {
    const many = ["a", "b", "c", "d"].map((host) => row(host, "swap", "warn", "on"));
    assert.equal(
      tableText([...many, row("a", "cpu", "fail", "1 CPU")]),
      [
        "a        cpu   FAIL  1 CPU",
        "                     fix: do that",
        "4 hosts  swap  warn  on",
        "                     fix: do that",
        "                     on a, b, c, d",
      ].join("\n"),
    );
  });
});

test("every check has its part of docs/preflight.md, and no other has", () => {
  const page = readFileSync(join(__dirname, "../../../docs/preflight.md"), "utf8");
  const parts = [...page.matchAll(/^### `(.*)`$/gm)].map((match) => match[1]);
  assert.deepEqual(parts, ["connect", ...CHECKS]);
});

test("whose node the host is already, and which of its interfaces the kernel listens on for routes", async () => {
  const entry = "var/lib/kubexm/ledger/1";
  const conf = (name: string, [acceptRa, forwarding]: readonly [number, number]) => ({
    [`proc/sys/net/ipv6/conf/${name}/accept_ra`]: `${acceptRa}\n`,
    [`proc/sys/net/ipv6/conf/${name}/forwarding`]: `${forwarding}\n`,
  });
  const files = {
    "etc/resolv.conf": "",
    "etc/hosts": "",
    [`${entry}/id`]: "membership in the cluster",
    [`${entry}/owners/KubernetesNode.prod-w1-node`]: "",
    ...conf("all", [1, 0]),
    ...conf("bykernel", [1, 0]),
    ...conf("byhand", [2, 0]),
    ...conf("bydaemon", [0, 0]),
    ...conf("forwards", [1, 1]),
    ...conf("without", [1, 0]),
  };
  const host = fakeHost(files, { ip: `case "$*" in *without*) ;; *) echo default ;; esac` });
  try {
    const { places, advertised } = await lookAt(host.remote, { ...questionsFor(alone, "w1"), modules: [], ipv6: true });
    assert.deepEqual(places, ["KubernetesNode.prod-w1-node"]);
    assert.deepEqual(advertised, ["bykernel"]);
  } finally {
    host.end();
  }
});
