import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { z } from "zod";
import { anyLabName, labDown, labExec, labUp, type LabHost } from "../../lab/hosts";
import { snapshot } from "../../lab/snapshot";
import type { Definition } from "../../provider/definition";
import { apply, look, revert } from "../../provider/engine";
import { factsOf, type Facts } from "../../provider/facts";
import { closeAll, connect, hostSpec, type Remote } from "../../provider/ssh";
import type { Step } from "../../provider/step";
import {
  Chrony,
  Firewall,
  Hostname,
  HostsFile,
  Kernel,
  Limits,
  Packages,
  Resolver,
  Swap,
  System,
  Timezone,
} from "../../resources";
import { nodeModules, nodeParameters } from "../../resources/modules/node-kernel";
import { changesOn } from "../harness/machine-wide";
import { context, differing, walk, work, type StepCase } from "../harness/step-cases";

const NAME = anyLabName();

interface Case extends Omit<StepCase, "steps" | "then"> {
  of: (facts: Facts) => Step[];
  then?: { of: (facts: Facts) => Step[]; holds: string };
  /** Takes away what `given` brought, after the comparison. */
  after?: string;
}

/** The steps of a component for these arguments. */
const of =
  <A extends z.ZodObject>({ definition }: { definition: Definition<A> }, args: z.input<A>) =>
  (facts: Facts): Step[] =>
    definition.steps(definition.args.parse(args), facts).flat();

const spec = {
  kubernetes: { proxyMode: "iptables" },
  network: { kubePodsCIDR: "10.244.0.0/16" },
} as Parameters<typeof nodeModules>[0] & Parameters<typeof nodeParameters>[0];
const orphan = "# BEGIN KubeXM Managed Block\\n192.0.2.66 old.example\\n# END KubeXM Managed Block\\n";
const lines = ["192.0.2.1 m1.cluster.local m1", "2001:db8::1 m1.cluster.local m1"];
const ports = ["22/tcp", "6443/tcp", "30000-32767/udp"];
const networks = ["10.244.0.0/16", "fd00:10:244::/56"];
const inFile = (sed: string, path: string) => `sed '${sed}' ${path} >/tmp/x; cat /tmp/x >${path}; rm /tmp/x`;

const cases: readonly Case[] = [
  {
    name: "Hostname",
    of: of(Hostname, { name: "kx-renamed" }),
    holds: 'test "$(hostname)" = kx-renamed && test "$(cat /etc/hostname)" = kx-renamed',
    drifts: [
      { by: "echo other >/proc/sys/kernel/hostname", step: "hostname" },
      { by: "echo other >/etc/hostname", step: "path /etc/hostname" },
    ],
    then: { of: of(Hostname, { name: "kx-again" }), holds: 'test "$(hostname)" = kx-again' },
  },
  {
    name: "HostsFile: both families; other people's lines stay",
    given: "printf '192.0.2.77 mine.example\\n' >>/etc/hosts",
    of: of(HostsFile, { lines }),
    holds:
      "getent ahostsv4 m1 | grep -q 192.0.2.1 && grep -q '^2001:db8::1 m1' /etc/hosts && getent hosts mine.example && getent hosts localhost",
    drifts: [
      { by: inFile("/BEGIN KubeXM/,/END KubeXM/d", "/etc/hosts"), step: "block /etc/hosts KubeXM Managed Block" },
    ],
    then: {
      of: of(HostsFile, { lines: ["192.0.2.2 m2"] }),
      holds: "getent hosts m2 && ! getent hosts m1",
    },
    after: inFile("/mine.example/d", "/etc/hosts"),
  },
  {
    name: "Resolver: plain file, at its top",
    of: of(Resolver, { servers: ["192.0.2.53", "2001:db8::53"] }),
    holds:
      'test "$(grep -m 1 ^nameserver /etc/resolv.conf)" = \'nameserver 192.0.2.53\' && test "$(grep -c ^nameserver /etc/resolv.conf)" -gt 2',
    drifts: [{ by: inFile("/192.0.2.53/d", "/etc/resolv.conf"), step: "resolver" }],
    then: {
      of: of(Resolver, { servers: ["192.0.2.54"] }),
      holds: "grep -q 192.0.2.54 /etc/resolv.conf && ! grep -q 192.0.2.53 /etc/resolv.conf",
    },
  },
  {
    name: "Timezone",
    of: of(Timezone, { zone: "Asia/Kolkata" }),
    holds: 'test "$(date +%Z)" = IST && test "$(cat /etc/timezone)" = Asia/Kolkata',
    drifts: [
      { by: "ln -sfn /usr/share/zoneinfo/UTC /etc/localtime", step: "path /etc/localtime" },
      { by: "echo Etc/UTC >/etc/timezone", step: "path /etc/timezone" },
    ],
  },
  {
    name: "Swap: fstab and a unit",
    given:
      "printf '# swap was here\\n/dev/kx-swap none swap sw 0 0\\n' >>/etc/fstab; printf '[Swap]\\nWhat=/kx.swap\\n' >/etc/systemd/system/kx.swap; systemctl daemon-reload",
    of: of(Swap, {}),
    holds: "! grep -q '^/dev/kx-swap' /etc/fstab && grep -q '^# swap was here' /etc/fstab",
    drifts: [{ by: "sed -i 's/^#kubexm# //' /etc/fstab", step: "swap" }],
    after: "sed -i '/swap/d' /etc/fstab; rm /etc/systemd/system/kx.swap; systemctl daemon-reload",
  },
  {
    name: "Kernel: what nodes need",
    of: of(Kernel, { modules: nodeModules(spec), sysctl: { ...nodeParameters(spec), "net.not.there": 1 } }),
    given: "echo 0 >/proc/sys/net/bridge/bridge-nf-call-ip6tables",
    holds:
      'test "$(cat /proc/sys/net/bridge/bridge-nf-call-ip6tables)" = 1 && grep -qx "kernel.panic = 10" /etc/sysctl.d/99-kubexm-cri.conf && grep -qx br_netfilter /etc/modules-load.d/kubexm.conf',
    drifts: [
      {
        by: "echo 0 >/proc/sys/net/bridge/bridge-nf-call-ip6tables",
        step: "sysctl net.bridge.bridge-nf-call-ip6tables",
      },
      { by: "rm /etc/sysctl.d/99-kubexm-cri.conf", step: "path /etc/sysctl.d/99-kubexm-cri.conf" },
    ],
    after: "echo 1 >/proc/sys/net/bridge/bridge-nf-call-ip6tables",
  },
  {
    name: "Kernel: forwarding, with what the kernel changes beside it",
    given: "cd /proc/sys/net/ipv4 && echo 0 >ip_forward && echo 0 >conf/all/accept_redirects",
    of: of(Kernel, { modules: [], sysctl: { "net.ipv4.ip_forward": 1 } }),
    holds: 'test "$(cat /proc/sys/net/ipv4/ip_forward)" = 1',
    drifts: [{ by: "echo 0 >/proc/sys/net/ipv4/ip_forward", step: "sysctl net.ipv4.ip_forward" }],
    after: "echo 1 >/proc/sys/net/ipv4/ip_forward",
  },
  {
    name: "Limits: on a systemd that allows too few files",
    given:
      "mkdir /etc/systemd/system.conf.d; printf '[Manager]\\nDefaultLimitNOFILE=1024:4096\\n' >/etc/systemd/system.conf.d/10-low.conf; systemctl daemon-reexec",
    of: of(Limits, {}),
    holds: "systemctl show -p DefaultLimitNOFILE | grep -qx DefaultLimitNOFILE=524288",
    drifts: [{ by: "rm /etc/systemd/system.conf.d/50-kubexm.conf", step: "limit nofile" }],
    after:
      "systemctl show -p DefaultLimitNOFILE | grep -qx DefaultLimitNOFILE=4096; rm -r /etc/systemd/system.conf.d; systemctl daemon-reexec",
  },
  {
    name: "Firewall: nftables, rules in force and at boot",
    given: `printf '#!/usr/sbin/nft -f\\nflush ruleset\\ntable inet filter {\\n chain input {\\n type filter hook input priority 0; policy drop;\\n ct state established,related accept\\n iif lo accept\\n tcp dport 22 accept\\n }\\n chain forward {\\n type filter hook forward priority 0; policy drop;\\n }\\n}\\n' >/etc/nftables.conf; systemctl start nftables`,
    of: of(Firewall, { ports, networks }),
    holds:
      "nft list chain inet filter input | grep -q 'tcp dport 6443 accept' && nft list chain inet filter forward | grep -q 'ip daddr 10.244.0.0/16 accept' && nft -c -f /etc/nftables.conf && systemctl reload nftables && nft list chain inet filter input | grep -q 'udp dport 30000-32767'",
    drifts: [
      { by: "nft -f /etc/nftables.conf; nft flush chain inet filter forward", step: "opening 10.244.0.0/16" },
      { by: "sed -i '/dport 6443/d' /etc/nftables.conf", step: "opening 6443/tcp" },
    ],
    then: {
      of: of(Firewall, { ports: ["22/tcp"] }),
      holds: "! nft list ruleset | grep -q 6443 && ! grep -q 6443 /etc/nftables.conf",
    },
    after:
      "systemctl stop nftables; apt-get -y -q --reinstall -o Dpkg::Options::=--force-confnew install nftables >/dev/null 2>&1; nft flush ruleset",
  },
  {
    name: "Firewall: ufw",
    given:
      "apt-get -y -q install ufw >/dev/null 2>&1; ufw allow 22/tcp >/dev/null; ufw allow 'Bonjour' >/dev/null; ufw --force enable >/dev/null",
    of: of(Firewall, { ports: ["22/tcp", "6443/tcp"], networks }),
    holds:
      "ufw status | grep -q '^6443/tcp .*ALLOW' && iptables -S | grep -q -- '-d 10.244.0.0/16' && ip6tables -S | grep -q -- '-s fd00:10:244::/56'",
    drifts: [
      { by: "ufw delete allow 6443/tcp", step: "opening 6443/tcp" },
      { by: "ufw route delete allow to 10.244.0.0/16", step: "opening 10.244.0.0/16" },
    ],
    then: {
      of: of(Firewall, { ports: ["22/tcp", "53/udp"] }),
      holds: "! ufw status | grep -q 6443 && ufw status | grep -q 53/udp",
    },
  },
  {
    name: "Firewall: ufw switched off",
    of: of(Firewall, { mode: "disable", ports }),
    holds: "ufw status | grep -q inactive && ! iptables -S | grep -q 'P INPUT DROP'",
    drifts: [{ by: "ufw --force enable >/dev/null", step: "ufw" }],
    after: "ufw --force disable >/dev/null; ufw --force reset >/dev/null; apt-get -y -q purge ufw >/dev/null 2>&1",
  },
  {
    name: "Packages: the tools of a node, with what they bring",
    of: of(Packages, {
      debs: ["socat", "conntrack", "ebtables", "ipset", "bash-completion", "nfs-common", "open-iscsi"],
    }),
    holds: "dpkg -s ipset nfs-common open-iscsi bash-completion >/dev/null && iscsiadm --version",
    // Each heals within seconds, and takes the package manager many more: see the cases of the step.
    drifts: [],
  },
  {
    name: "Chrony: in place of systemd-timesyncd, which comes back",
    given: "apt-get -y -q install systemd-timesyncd >/dev/null 2>&1",
    of: of(Chrony, { servers: ["192.0.2.123"] }),
    holds: "systemctl is-active -q chrony && grep -qx 'server 192.0.2.123 iburst' /etc/chrony/chrony.conf",
    drifts: [
      { by: "systemctl stop chrony", step: "unit chrony.service" },
      { by: "echo 'server 192.0.2.9' >>/etc/chrony/chrony.conf", step: "path /etc/chrony/chrony.conf" },
    ],
    after:
      "apt-get -y -q purge systemd-timesyncd >/dev/null 2>&1; rm -rf /var/lib/systemd/timesync; userdel systemd-timesync 2>/dev/null; :",
  },
  {
    name: "System: all of it as one",
    of: of(System, {
      hostname: "kx-system",
      timezone: "Asia/Kolkata",
      modules: nodeModules(spec),
      sysctl: nodeParameters(spec),
    }),
    holds: 'test "$(hostname)" = kx-system && test "$(date +%Z)" = IST',
    drifts: [{ by: "echo other >/proc/sys/kernel/hostname", step: "hostname" }],
    then: {
      of: of(System, { hostname: "kx-system", modules: [], sysctl: {} }),
      holds: '! test "$(date +%Z)" = IST',
    },
  },
];

describe("components on real hosts", () => {
  let hosts: LabHost[] = [];
  let remotes: Remote[] = [];
  const [one, two] = [() => pick(remotes, 0), () => pick(remotes, 1)];
  before(async () => {
    const lab = await labUp({ name: NAME, hosts: 2, keep: false });
    hosts = lab.hosts;
    const specs = hosts.map(({ name, address, user, privateKeyPath }) =>
      hostSpec.parse({ name, address, user, privateKeyPath, knownHostsPath: lab.knownHostsPath }),
    );
    remotes = await Promise.all(specs.map((spec) => connect(spec)));
  });
  after(async () => {
    await closeAll();
    await labDown(NAME);
  });

  // Both hosts at once; those that change the network stay together, and what one of them sets up the next may use.
  const halves = [
    cases.filter(({ name }) => /Firewall|Kernel|Limits/.test(name)),
    cases.filter(({ name }) => !/Firewall|Kernel|Limits/.test(name)),
  ];
  describe("one by one", { concurrency: 2 }, () => {
    for (const [at, half] of halves.entries())
      describe(`host ${at + 1}`, { concurrency: 1 }, () => {
        for (const row of half) test(row.name, () => walkOn(pick(hosts, at), pick(remotes, at), row));
      });
  });

  test("HostsFile: blocks of an older cluster do not survive", async () => {
    const host = pick(hosts, 0);
    const clean = await snapshot(host);
    await labExec(host, `printf '${orphan}${orphan}' >>/etc/hosts`);
    const wanted = work("HostsFile.orphan", of(HostsFile, { lines })(await factsOf(one())));
    const [seen] = await look(one(), [wanted]);
    assert.ok(seen);
    const { notes } = await apply(one(), wanted, seen, context("HostsFile"));
    assert.match(notes.join("\n"), /block of another cluster/);
    assert.equal((await labExec(host, "grep -c old.example /etc/hosts || :")).stdout.trim(), "0");
    await revert(one(), wanted.owner, false, context("HostsFile"));
    assert.equal(changesOn(clean, await snapshot(host)), "");
  });

  test("HostsFile: a block that looks right but has no record is taken over, and goes", async () => {
    const host = pick(hosts, 0);
    const clean = await snapshot(host);
    const wanted = work("HostsFile.lost", of(HostsFile, { lines })(await factsOf(one())));
    const [seen] = await look(one(), [wanted]);
    assert.ok(seen);
    await apply(one(), wanted, seen, context("HostsFile"));
    await labExec(host, "rm -rf /var/lib/kubexm");
    assert.deepEqual(await differing(one(), wanted), ["block /etc/hosts KubeXM Managed Block"]);
    const [again] = await look(one(), [wanted]);
    assert.ok(again);
    await apply(one(), wanted, again, context("HostsFile"));
    await revert(one(), wanted.owner, false, context("HostsFile"));
    assert.equal(changesOn(clean, await snapshot(host)), "");
  });

  test("Chrony: a host serves, the other is in step with it", async () => {
    const [server, client] = [pick(hosts, 0), pick(hosts, 1)];
    const clean = await Promise.all([server, client].map((host) => snapshot(host)));
    const run = async (remote: Remote, args: z.input<typeof Chrony.definition.args>) => {
      const facts = await factsOf(remote);
      const parsed = Chrony.definition.args.parse(args);
      const verify = Chrony.definition.verify?.(parsed, facts);
      const wanted = { ...work("Chrony.time", Chrony.definition.steps(parsed, facts)), ...(verify && { verify }) };
      const [seen] = await look(remote, [wanted]);
      assert.ok(seen);
      return apply(remote, wanted, seen, context("Chrony"));
    };
    await run(one(), { servers: [], serve: true, allow: [client.address] });
    await run(two(), { servers: [server.address] });
    // What the first answer promises comes to be with the next ones.
    const inStep =
      "timeout 15 sh -c 'until chronyc -n tracking | grep -q Normal; do sleep 0.5; done'; chronyc -n tracking";
    const { stdout } = await labExec(client, inStep);
    assert.match(stdout, new RegExp(`\\(${server.address.replaceAll(".", "\\.")}\\)[\\s\\S]*Normal`));
    await assert.rejects(run(two(), { servers: ["192.0.2.123"] }), /UDP 123/);
    await Promise.all(remotes.map((remote) => revert(remote, "Chrony.time", false, context("Chrony"))));
    const now = await Promise.all([server, client].map((host) => snapshot(host)));
    assert.deepEqual(
      now.map((snap, i) => changesOn(pick(clean, i), snap)),
      ["", ""],
    );
  });

  test("Timezone: one that the host does not know is refused by name", async () => {
    const facts = await factsOf(one());
    const verify = Timezone.definition.verify?.({ zone: "Mars/Olympus" }, facts);
    const steps = of(Timezone, { zone: "Mars/Olympus" })(facts);
    const wanted = { ...work("Timezone.mars", steps), ...(verify && { verify }) };
    const [seen] = await look(one(), [wanted]);
    assert.ok(seen);
    await assert.rejects(apply(one(), wanted, seen, context("Timezone")), /no Mars\/Olympus/);
    await revert(one(), wanted.owner, false, context("Timezone"));
  });

  test("Firewall: nothing to do where none runs", async () => {
    const wanted = work("Firewall.none", of(Firewall, { ports, networks })(await factsOf(one())));
    assert.deepEqual(await differing(one(), wanted), []);
  });
});

function pick<T>(list: readonly T[], i: number): T {
  const item = list[i];
  assert.ok(item !== undefined);
  return item;
}

async function walkOn(host: LabHost, remote: Remote, { of: steps, then, given, after: later, ...row }: Case) {
  const facts = await factsOf(remote);
  if (given !== undefined) await labExec(host, given);
  const start = await snapshot(host);
  try {
    await walk(remote, {
      ...row,
      steps: steps(facts),
      ...(then && { then: { steps: then.of(facts), holds: then.holds } }),
    });
    assert.equal(changesOn(start, await snapshot(host)), "");
  } finally {
    // One that fails must not spoil the next.
    const { owner } = work(`case.${row.name.replaceAll(/\W+/g, "-")}`, []);
    await revert(remote, owner, false, context(owner));
    if (later !== undefined) await labExec(host, later);
  }
}
