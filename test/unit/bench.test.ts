import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stateIn } from "../../bench/cluster-state";
import { distinct, endpointIn, imagesIn, networkOf } from "../../bench/floor";
import { benchArguments } from "../../bench/groups";
import { scpTool } from "../../bench/groups/cluster-files";
import { clusterRows } from "../../bench/groups/cluster-rows";
import { turned } from "../../bench/contest";
import { demoRows } from "../../bench/groups/lab";
import { hostsRows } from "../../bench/groups/hosts-rows";
import { cgroupIn, sshCount } from "../../bench/hosts";
import { measured } from "../../bench/measure";
import { sshTool } from "../../bench/peers";
import {
  checkScript as readyCheck,
  RESET,
  SAVE,
  linesOf,
  networkParameters,
  present,
  stateScript,
} from "../../bench/ready";
import { median, rowsOf, table, targetText, writeReport } from "../../bench/report";
import { FILES, checkScript, hostsBlock, makeScript } from "../../bench/role";
import { root } from "../../bench/root";

const arguments_ = [
  {
    argv: [],
    groups: ["lab", "provider", "hosts", "cluster"],
    hosts: [10, 40],
    runs: 3,
    peers: ["pyinfra", "mitogen", "ansible"],
  },
  { argv: ["lab", "--peers", "pyinfra"], groups: ["lab"], hosts: [10, 40], runs: 3, peers: ["pyinfra"] },
  {
    argv: ["provider", "provider", "--hosts", "80,10,80", "--runs", "5"],
    groups: ["provider"],
    hosts: [80, 10],
    runs: 5,
    peers: ["pyinfra", "mitogen", "ansible"],
  },
];
for (const { argv, ...wanted } of arguments_) {
  test(`bench ${argv.join(" ")}`, () => {
    const { groups, options } = benchArguments(argv);
    assert.deepEqual({ groups, ...options }, wanted);
  });
}

const refused = [
  { argv: ["clusters"], says: /no group clusters; .*groups are lab, provider, hosts, cluster/ },
  { argv: ["constructor"], says: /no group constructor/ },
  { argv: ["--hosts", "0"], says: /--hosts 0: expected a number from 1 to 80/ },
  { argv: ["--hosts", "10,many"], says: /--hosts many/ },
  { argv: ["--peers", "pyinfra,chef"], says: /--peers chef: expected some of pyinfra, mitogen, ansible/ },
  { argv: ["--runs", "2"], says: /--runs 2: expected a number from 3/ },
  { argv: ["--fast"], says: /usage: npm run bench/ },
];
for (const { argv, says } of refused) {
  test(`bench ${argv.join(" ")} is refused`, () => assert.throws(() => benchArguments(argv), says));
}

test("the median of an even count lies between the two in the middle", () => {
  assert.equal(median([5, 1, 3]), 3);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

const targets = [
  { target: { most: 15 }, text: "<= 15", ours: 15, ratio: null, holds: true },
  { target: { most: 15 }, text: "<= 15", ours: 15.1, ratio: null, holds: false },
  { target: { most: 1.3, of: "floor" }, text: "<= 1.3 x floor", ours: 2.6, ratio: 1.3, holds: true },
  { target: { most: 1.3, of: "floor" }, text: "<= 1.3 x floor", ours: 2.7, ratio: 1.35, holds: false },
  { target: { least: 50, fasterThan: "slow" }, text: ">= 50 x faster than slow", ours: 2, ratio: 50, holds: true },
  { target: { least: 50, fasterThan: "slow" }, text: ">= 50 x faster than slow", ours: 4, ratio: 25, holds: false },
  { target: { least: 0.8, of: "slow" }, text: ">= 0.8 x slow", ours: 79, ratio: 0.79, holds: false },
] as const;
for (const { target, text, ours, ratio, holds } of targets) {
  test(`${ours} against ${text}`, () => {
    const [row, ...more] = rowsOf("m", "s", ours, { floor: 2, slow: 100 }, [target]);
    assert.equal(targetText(target), text);
    assert.deepEqual(more, []);
    assert.deepEqual(row, { metric: "m", unit: "s", ours, peers: { floor: 2, slow: 100 }, ratio, target: text, holds });
  });
}

test("a target against a peer that did not run is left out, the figure stays", () => {
  const [row, ...more] = rowsOf("m", "s", 1.23456, {}, [{ most: 1, of: "nobody" }]);
  assert.deepEqual(more, []);
  assert.deepEqual(row, { metric: "m", unit: "s", ours: 1.23, peers: {}, ratio: null, target: null, holds: null });
});

test("the table has a line for each target and says where one does not hold", () => {
  const rows = rowsOf("time", "s", 3, { floor: 2 }, [{ most: 1.3, of: "floor" }, { most: 5 }]);
  const [head, first, second, ...rest] = table(rows).split("\n");
  assert.match(head ?? "", /^metric +unit +ours +peers +ratio +target +holds$/);
  assert.match(first ?? "", /^time +s +3 +floor 2 +1\.5 +<= 1\.3 x floor +NO$/);
  assert.match(second ?? "", /^time +s +3 +<= 5 +yes$/);
  assert.deepEqual(rest, []);
});

async function inFolder(work: (folder: string) => Promise<void> | void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "kubexm-bench-test-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a report is written as it is", () =>
  inFolder((folder) => {
    const rows = rowsOf("m", "s", 1);
    const machine = { cores: 2, cpu: "c", memoryGiB: 24, loadBefore: 0 };
    const report = { group: "lab", date: "2026-01-01T00:00:00.000Z", machine, versions: { node: "v20" }, rows };
    assert.equal(writeReport(join(folder, "results"), report), join(folder, "results", "lab.json"));
    assert.deepEqual(JSON.parse(readFileSync(join(folder, "results", "lab.json"), "utf8")), report);
  }));

const id = "10b053391511eb429458757241722cdfeda0624205e944f1816dae7ba8445740";
const cgroups = [
  {
    name: "version 1, below the container's own systemd",
    text: `5:memory:/kubexm-lab/${id}/init.scope\n4:cpu,cpuacct:/kubexm-lab/${id}\n0::/\n`,
    memory: { version: 1, dir: `/sys/fs/cgroup/memory/kubexm-lab/${id}` },
  },
  {
    name: "version 2 with systemd's names",
    text: `0::/system.slice/docker-${id}.scope/init.scope\n`,
    memory: { version: 2, dir: `/sys/fs/cgroup/system.slice/docker-${id}.scope` },
  },
];
for (const { name, text, memory } of cgroups) {
  test(`cgroup of a container: ${name}`, () => assert.deepEqual(cgroupIn(text, "memory"), memory));
}

test("connections and sessions are counted in sshd's journal", () => {
  const journal = [
    'Connection from 172.30.5.1 port 40000 on 172.30.5.11 port 22 rdomain ""',
    "Accepted publickey for root from 172.30.5.1 port 40000 ssh2: ED25519 SHA256:abc",
    "Starting session: command for root from 172.30.5.1 port 40000 id 0",
    "Starting session: command for root from 172.30.5.1 port 40000 id 1",
    "Close session: user root from 172.30.5.1 port 40000 id 0",
  ].join("\n");
  assert.deepEqual(sshCount(journal), { connections: 1, sessions: 2 });
  assert.deepEqual(sshCount(""), { connections: 0, sessions: 0 });
});

test("the role's scripts are sh, and its program is 64 KiB", () => {
  const block = hostsBlock({ hosts: [{ name: "node1", address: "192.0.2.1" }] });
  assert.equal(block, "192.0.2.1 node1.bench.local node1\n");
  for (const text of [checkScript(block), makeScript(block)])
    assert.deepEqual(spawnSync("sh", ["-n"], { input: text, encoding: "utf8" }).stderr, "");
  assert.equal(Buffer.byteLength(FILES.program.content), 64 * 1024);
});

test("what a command leaves running is ended and counted with it", { skip: process.platform !== "linux" }, () =>
  inFolder(async (folder) => {
    const script = join(folder, "script");
    const pid = join(folder, "pid");
    writeFileSync(
      script,
      `setsid sleep 300 & echo $! >${pid}; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo told`,
    );
    const { cpuSeconds, peakMB, seconds, stdout } = await measured({ command: "sh", args: [script] }, folder);
    assert.equal(stdout, "told\n");
    assert.ok(cpuSeconds > 0 && seconds > 0 && peakMB > 0);
    assert.throws(() => process.kill(Number(readFileSync(pid, "utf8")), 0), { code: "ESRCH" });
  }),
);

test("what is to go on does, and the command is measured without it", { skip: process.platform !== "linux" }, () =>
  inFolder(async (folder) => {
    const text = "setsid sleep 300 >/dev/null 2>&1 & echo $!";
    const { stdout, seconds } = await measured({ command: "sh", args: ["-c", text], keep: true }, folder);
    process.kill(Number(stdout), "SIGKILL");
    assert.ok(seconds > 0);
  }),
);

test("the demo is reported with time, CPU time and memory", () => {
  const taken = [1, 3, 2].map((n) => ({ seconds: n, cpuSeconds: 10 * n, peakMB: 100 * n, processes: [], stdout: "" }));
  assert.deepEqual(
    demoRows("warm", taken, [{ most: 60 }]).map(({ metric, unit, ours, holds }) => [metric, unit, ours, holds]),
    [
      ["npm run demo, warm (lab and up)", "s", 2, true],
      ["npm run demo, warm: CPU time", "s", 20, null],
      ["npm run demo, warm: peak memory", "MB", 200, null],
    ],
  );
});

test("a command that fails is an error with its words", () =>
  inFolder(async (folder) => {
    await assert.rejects(
      measured({ command: "sh", args: ["-c", "echo why >&2; exit 3"] }, folder),
      /exit code 3[^]*why/,
    );
  }));

test("an image's names as people write them", () => {
  const sum = `sha256:${"0".repeat(64)}`;
  assert.deepEqual(imagesIn(`registry.k8s.io/pause:3.10.1\nregistry.k8s.io/pause@${sum}\n${sum}\n`), [
    "registry.k8s.io/pause:3.10.1",
  ]);
});

test("a program that goes by several names is sent once, by its first", () => {
  const file = (name: string, sha256: string) => ({ name, sha256, path: `/cache/${name}` });
  const files = [file("kubeadm", "a"), file("kubelet", "a"), file("kubectl", "b")];
  assert.deepEqual(
    distinct(files).map(({ name }) => name),
    ["kubeadm", "kubectl"],
  );
});

test("the endpoint and the network of a cluster, from what kubexm wrote", () => {
  assert.equal(endpointIn("a: 1\ncontrolPlaneEndpoint: lb.example.internal:6443\nb: 2\n"), "lb.example.internal:6443");
  const host = { name: "m1", address: "192.0.2.11", port: 22, user: "root", container: "c", ownDocker: true };
  assert.equal(networkOf({ hosts: [host] }), "192.0.2.");
});

const condition = (type: string, status: string, seconds: number) => ({
  type,
  status,
  lastTransitionTime: new Date(seconds * 1000).toISOString(),
});
const node = (name: string, readySeconds: number) => ({
  kind: "Node",
  metadata: { name, labels: { b: "", a: "1" } },
  spec: { taints: ["t", "node.kubernetes.io/not-ready"].map((key) => ({ key, effect: "NoSchedule" })) },
  status: {
    conditions: [condition("DiskPressure", "False", 99), condition("Ready", "True", readySeconds)],
    nodeInfo: { kubeletVersion: "v1", containerRuntimeVersion: "containerd://2" },
  },
});
const pod = (name: string, label: string, status: string, readySeconds: number) => ({
  kind: "Pod",
  metadata: { name, namespace: "kube-system", labels: { "k8s-app": label } },
  spec: { containers: [{ image: `example.org/${label}:1` }] },
  status: { conditions: [condition("Ready", status, readySeconds)] },
});

const leaving = <T extends { metadata: object }>(thing: T) => ({
  ...thing,
  metadata: { ...thing.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
});

test("a cluster's lines say what it is, and not what is otherwise every time", () => {
  const items = [
    leaving(pod("coredns-w", "kube-dns", "True", 60)),
    node("w1", 7),
    node("m1", 5),
    pod("coredns-x", "kube-dns", "True", 9),
    pod("p-y", "proxy", "False", 50),
  ];
  const { lines, nodesReadyMs, dnsReadyMs } = stateIn(JSON.stringify({ items }));
  assert.deepEqual(lines, [
    "m1 v1 containerd://2 ready a=1 b= t:NoSchedule",
    "w1 v1 containerd://2 ready a=1 b= t:NoSchedule",
    "kube-system example.org/kube-dns:1 ready",
    "kube-system example.org/proxy:1 not ready",
  ]);
  assert.deepEqual([nodesReadyMs, dnsReadyMs], [7000, 9000]);
});

test("rows of a cluster: medians against the floor, and the provider's own memory", () => {
  const taken = (seconds: number) => ({
    seconds,
    cpuSeconds: seconds / 2,
    peakMB: 300,
    processes: [
      { command: "node dynamic-provider", peakMB: 150 },
      { command: "pulumi", peakMB: 200 },
    ],
    stdout: "",
  });
  const making = (seconds: number) => ({ taken: taken(seconds), hostCpu: 40, nodesReady: 1, dnsReady: 2, lines: [] });
  const life = (seconds: number) => ({ up: making(seconds), again: [taken(11)], added: making(20) });
  const shape = { masters: ["m1"], workers: ["w1"], spare: ["w2"] };
  const rows = clusterRows(shape, { ours: [life(59), life(40), life(61)], floor: [life(30), life(40), life(50)] });
  const judged = rows.flatMap(({ metric, ours, ratio, holds }) =>
    holds === null ? [] : [[metric, ours, ratio, holds]],
  );
  assert.deepEqual(judged, [
    ["1+1: up, to all nodes ready", 59, null, true],
    ["1+1: up, to all nodes ready", 59, 1.48, false],
    ["1+1: up: peak memory of the provider", 150, null, true],
    ["1+1: a worker more, to all nodes ready", 20, null, true],
    ["1+1: up --refresh, nothing to do", 11, null, true],
  ]);
});

test("the floor's scripts and the copies by scp are sh", () => {
  const syntax = (input: string) => spawnSync("sh", ["-n"], { input, encoding: "utf8" }).stderr;
  for (const name of ["floor.sh", "floor-host.sh"])
    assert.equal(syntax(readFileSync(join(root, "bench", name), "utf8")), "");
  const host = { name: "n1", address: "192.0.2.1", port: 22, user: "root", container: "c", ownDocker: true };
  const text = scpTool({ hosts: [host, { ...host, name: "n2" }], sshConfig: "/lab/ssh_config" }, ["/a", "/b"]).args[1];
  assert.equal(syntax(text ?? ""), "");
  assert.match(text ?? "", /\/a \/b n1:.* & [^]*\/a \/b n2:.* &/);
});

test("every tool is once the first", () => {
  const names = ["a", "b", "c"];
  assert.deepEqual(
    [0, 1, 2, 3].map((by) => turned(names, by).join("")),
    ["abc", "bca", "cab", "abc"],
  );
});

test("of a file of sysctl's, a container has the network's; comments are no modules", () => {
  const text = "# net.a = 1\nfs.b = 2\nnet.ipv4.ip_forward = 1\nnet.core.c=3 4\n";
  assert.deepEqual(networkParameters(text), [
    ["net.ipv4.ip_forward", "1"],
    ["net.core.c", "3 4"],
  ]);
  assert.deepEqual(present(networkParameters(text), "/proc/sys/net/core/c\n/proc/sys/net/ipv4/ip_forward.old\n"), [
    ["net.core.c", "3 4"],
  ]);
  assert.deepEqual(linesOf("# Managed by kubexm\noverlay\n\nbr_netfilter\n"), ["overlay", "br_netfilter"]);
});

const states = [
  { name: "holds", found: "it's $HOME\nb", holds: true },
  { name: "differs in a line", found: "it's $HOME\nc", holds: false },
  { name: "lacks a line", found: "it's $HOME", holds: false },
];
for (const { name, found, holds } of states) {
  test(`the check of a host that ${name}`, () => {
    const script = `cat <<'END'\n${found}\nEND\n`;
    const { status, stderr } = spawnSync("sh", { input: readyCheck(script, "it's $HOME\nb\n"), encoding: "utf8" });
    assert.equal(status === 0, holds, stderr);
    assert.equal(stderr.includes("wanted:\nit's $HOME\nb\nfound:"), !holds);
  });
}

test("the scripts around readiness are sh", () => {
  for (const input of [readyCheck(stateScript(["overlay"], [["net.a.b", "1"]]), "state\n"), SAVE, RESET])
    assert.equal(spawnSync("sh", ["-n"], { input, encoding: "utf8" }).stderr, "");
  assert.match(stateScript([], [["net.a.b", "1"]]), /\/proc\/sys\/net\/a\/b\b/);
});

test("a login for each host, with one script or each with its own", () => {
  const host = { name: "n1", address: "192.0.2.1", port: 22, user: "root", container: "c", ownDocker: true };
  const lab = { hosts: [host, { ...host, name: "n2" }], sshConfig: "/lab/ssh_config" };
  const text = (script: string | ((name: string) => string)) => sshTool(lab, script).args[1] ?? "";
  assert.match(text("/all"), / n1 sh -s <\/all &[^]* n2 sh -s <\/all &/);
  assert.match(
    text((name) => `/of/${name}`),
    / n1 sh -s <\/of\/n1 &[^]* n2 sh -s <\/of\/n2 &/,
  );
});

const readiness = (hosts: number, names: readonly string[]) => {
  const taken = (seconds: number) => [{ seconds, cpuSeconds: 1, peakMB: 100, processes: [], stdout: "" }];
  const ours = {
    ...{ preflight: taken(4), first: taken(20), again: taken(8), drift: taken(3) },
    ...{ floor: taken(2), idle: taken(5), grown: taken(10) },
  };
  const theirs: Record<string, number> = { pyinfra: 18, mitogen: 30 };
  const peers = names.map((name) => [name, { first: taken(theirs[name] ?? 0), again: taken(9) }] as const);
  const grown = [5, 1, 2, 30].map((sessions) => ({ connections: 1, sessions }));
  return hostsRows(hosts, { ours, peers: Object.fromEntries(peers) }, grown);
};
const judgedOf = (rows: ReturnType<typeof readiness>) =>
  rows.flatMap(({ metric, target, ratio, holds }) => (holds === null ? [] : [[metric, target, ratio, holds]]));

test("rows of readiness: 40 hosts beside both peers", () => {
  const rows = readiness(40, ["pyinfra", "mitogen"]);
  const first = "first up of host readiness (packages are there), 40 hosts";
  assert.deepEqual(judgedOf(rows), [
    [first, ">= 1 x faster than pyinfra", 0.9, false],
    [first, ">= 1 x faster than mitogen", 1.5, true],
    ["up --refresh, nothing to do, 40 hosts", ">= 1 x faster than mitogen", 1.13, true],
    ["kubexm drift, 40 hosts", "<= 1.5 x floor", 1.5, true],
    ["one host more, 40 hosts", "<= 1.2 x up --refresh", 1.25, false],
    ["one host more: sessions on each of the others, 40 hosts", "<= 1", null, false],
  ]);
  const found = (what: string) => rows.find(({ metric }) => metric.startsWith(what));
  assert.equal(found("up --refresh: Pulumi's own share")?.ours, 5);
  assert.equal(found("one host more: sessions on each of the others")?.ours, 2);
  assert.deepEqual(found("up --refresh, nothing")?.peers, { floor: 2, pyinfra: 9, mitogen: 9 });
});

const fewer = [
  { hosts: 3, peers: ["pyinfra"], targets: [">= 1 x faster than pyinfra", "<= 1.5 x floor", "<= 1"] },
  { hosts: 80, peers: [], targets: ["<= 5", "<= 1.5 x floor", "<= 1.2 x up --refresh", "<= 1"] },
];
for (const { hosts, peers, targets: wanted } of fewer) {
  test(`rows of readiness: ${hosts} hosts beside ${peers.join(", ") || "nobody"}`, () =>
    assert.deepEqual(
      judgedOf(readiness(hosts, peers)).map(([, target]) => target),
      wanted,
    ));
}
