import { judgeExisting, judgePorts } from "./judge-existing";
import type { Asked } from "./asked";
import { fail, pass, tolerate, warn, type Judge, type Row } from "./checks";
import { judgeArch, judgeCgroup, judgeCpu, judgeKernel, judgeMemory, judgeModules, judgeOs } from "./judge-machine";
import type { Check } from "./names";
import type { Seen } from "./seen";

const list = (words: readonly string[]) => words.join(", ");

/** Of every Debian: its programs reckon with it, and other hosts never see it. */
const DEBIANS_OWN = "127.0.1.1";

const judgeHostname: Judge = ({ hostname, loopback, rewritten }) => {
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(hostname))
    return warn(
      `${hostname === "" ? "it has none" : hostname} is not a DNS name`,
      "nothing: up gives the host its name in cluster.yaml, and destroy the old one back",
    );
  if (rewritten)
    return warn(
      "cloud-init writes /etc/hosts anew at every boot, without the cluster's names",
      "write manage_etc_hosts: false to the user data of the machine; until then run up --refresh after a reboot",
    );
  const wrong = loopback.filter((address) => address !== DEBIANS_OWN);
  if (wrong.length === 0) return pass([hostname, ...loopback.map((address) => `${address} in /etc/hosts`)].join(", "));
  return warn(
    `${hostname} is ${list(wrong)} in /etc/hosts, where programs that look themselves up listen for nobody else`,
    `nothing for Kubernetes, which up tells each node's address; for other programs, take the name off that line`,
  );
};

/** chrony comes with up in any case; until then, and where it has to catch up, a clock that nobody keeps may be far off. */
const judgeTimeSync: Judge = ({ timekeepers }) => {
  const [keeper] = timekeepers;
  if (keeper === "machine") return pass("by the machine that the container runs on");
  return keeper === undefined
    ? warn("nothing keeps the clock right (chrony, ntpd, systemd-timesyncd)", "nothing: up sets up chrony")
    : pass(keeper);
};

const judgeZone: Judge = ({ zone, zoneKnown }, { zone: wanted }) => {
  const now = zone === "" ? "not set" : zone;
  if (wanted === undefined || zoneKnown === "yes") return pass(now);
  return zoneKnown === "no-zones"
    ? warn(`there are no time zones on the host (tzdata)`, "nothing: up installs tzdata if it can")
    : fail(`the host knows no time zone ${wanted}`, "write a zone from /usr/share/zoneinfo to system.timezone");
};

const judgeDns: Judge = ({ nameservers, answering, canProbe }, { moreDns }) => {
  if (nameservers.length === 0)
    return moreDns
      ? warn("/etc/resolv.conf names no DNS server", "nothing: up adds those of extra.resolves")
      : fail("/etc/resolv.conf names no DNS server", "set one up on the host, or list it under extra.resolves");
  if (!canProbe) return pass(list(nameservers));
  if (answering.length > 0) return pass(list(answering));
  const found = `no answer within 2 seconds from ${list(nameservers)}`;
  return moreDns
    ? warn(found, "nothing: up adds those of extra.resolves")
    : fail(found, "correct the host's DNS servers, or list some under extra.resolves");
};

/** Whoever reaches the host over such a route would lose it in the middle of up. */
const judgeRoute: Judge = ({ advertised }, { ipv6 }) => {
  if (!ipv6) return undefined;
  if (advertised.length === 0) return pass("stays");
  const settings = advertised.map((name) => `net.ipv6.conf.${name}.accept_ra=2`).join(", ");
  return fail(
    `the kernel has its IPv6 default route from router advertisements (${list(advertised)}), and drops it when it forwards packets of pods`,
    `write ${settings} into a file of /etc/sysctl.d, and load it with sysctl --system`,
  );
};

const judgeSwap: Judge = ({ swap }) =>
  swap.length === 0
    ? pass("off")
    : warn(
        `on: ${list(swap)}`,
        "nothing: up switches it off, and destroy on again; see that memory suffices without it",
      );

const judgeSelinux: Judge = ({ selinux }, { selinux: wanted }) => {
  const now = selinux ?? "off";
  if (now !== "enforcing" || wanted === "enforcing") return pass(now);
  return warn(
    "enforcing",
    `nothing: up makes it ${wanted} and destroy takes that back; system.selinux: enforcing keeps it`,
  );
};

/** Those that write the rules of iptables themselves. */
const MANAGERS = ["firewalld", "ufw"];

const judgeFirewall: Judge = ({ firewall, iptables }, { firewall: mode }) => {
  if (iptables !== undefined && !MANAGERS.some((name) => firewall.includes(name)))
    return warn(
      `rules of iptables that no firewalld or ufw wrote: ${iptables}`,
      "let in by rules of your own what the roles need (docs/components.md lists the ports): up leaves those of iptables alone",
    );
  if (firewall.length === 0) return pass("none");
  const what =
    mode === "open"
      ? "up opens what the roles need, and destroy closes it again"
      : "up switches it off, and destroy on again";
  return warn(`${list(firewall)} runs`, `nothing: ${what} (system.firewall)`);
};

const judgeDisk: Judge = ({ room, ...seen }, { disk }) => {
  const mounts = [...new Set(room.map(({ mount }) => mount))].map((mount) => {
    const parts = room.filter((part) => part.mount === mount);
    const need = parts.reduce((sum, { path }) => sum + (disk[path] ?? 0), 0);
    return { mount, paths: parts.map(({ path }) => path), free: parts[0]?.freeGiB ?? 0, need };
  });
  const short = mounts.filter(({ free, need }) => free < need);
  if (short.length === 0) return mounts.length === 0 ? undefined : pass(list(mounts.map(freeOf)));
  const found = list(short.map((row) => `${freeOf(row)}, ${row.need} GiB are needed (${list(row.paths)})`));
  const fix = "make room, or put the paths on a larger file system";
  // Where a cluster runs already, its own files are what fills the disk.
  return seen.ledger.length > 0 ? warn(found, fix) : fail(found, fix);
};
const freeOf = ({ mount, free }: { mount: string; free: number }) => `${free.toFixed(1)} GiB free on ${mount}`;

const GOOD_MS = 10;
const BAD_MS = 100;

/** etcd's advice: 99 of 100 writes are on the disk within 10 ms. From 100 ms on leaders are lost by it. */
const judgeEtcdDisk: Judge = ({ writes }, { etcdDir }) => {
  if (etcdDir === undefined || writes.length === 0) return undefined;
  const sorted = writes.toSorted((a, b) => a - b);
  const p99 = (sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0) * 1000;
  const found = `99 % of ${writes.length} synchronous writes below ${etcdDir} within ${p99.toFixed(1)} ms`;
  if (p99 <= GOOD_MS) return pass(found);
  const fix = `put etcd.dataDir on a faster disk (SSD) that nothing else writes to; etcd wants ${GOOD_MS} ms`;
  return p99 <= BAD_MS ? warn(found, fix) : fail(found, fix);
};

/** The checks of one host by itself, in the order of the table. */
const JUDGES: readonly (readonly [Check, Judge])[] = [
  ["os", judgeOs],
  ["arch", judgeArch],
  ["cpu", judgeCpu],
  ["memory", judgeMemory],
  ["disk", judgeDisk],
  ["kernel", judgeKernel],
  ["modules", judgeModules],
  ["cgroup", judgeCgroup],
  ["hostname", judgeHostname],
  ["time-sync", judgeTimeSync],
  ["timezone", judgeZone],
  ["existing", judgeExisting],
  ["ports", judgePorts],
  ["dns", judgeDns],
  ["ipv6-route", judgeRoute],
  ["etcd-disk", judgeEtcdDisk],
  ["swap", judgeSwap],
  ["selinux", judgeSelinux],
  ["firewall", judgeFirewall],
];

/** What one host shows by itself. */
export const judgeHost = (host: string, seen: Seen, asked: Asked): Row[] =>
  JUDGES.flatMap(([check, judge]) => {
    const verdict = judge(seen, asked);
    return verdict === undefined ? [] : [tolerate({ host, check, ...verdict }, asked.ignore)];
  });
