import { isDeepStrictEqual } from "node:util";
import { RemoteError } from "./errors";
import { osProfile, type OsProfile } from "./os";
import { sh } from "./shell";
import type { Remote } from "./ssh/remote";

/** What one exec tells about a host. */
export interface Facts {
  readonly os: OsProfile;
  readonly arch: string;
  readonly kernel: string;
  readonly machineId: string;
  readonly bootId: string;
  readonly cgroup: "v1" | "v2";
  readonly init: string;
  readonly virtualisation: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly swap: boolean;
  readonly selinux: string;
  readonly firewall: readonly string[];
  /** `eth0 192.0.2.9/24`, one line an address. */
  readonly addresses: readonly string[];
}

/** Words of a script that prints lines of `@key=value`. */
export const telling = sh`
p() { printf '@%s=%s\n' "$1" "$2"; }
r() { v=; if [ -r "$2" ] && { IFS= read -r v <"$2" || [ -n "$v" ]; } 2>/dev/null; then p "$1" "$v"; fi; }
active() {
# Systemd keeps a link for each that runs or is about to. Before version 236 it kept none.
key=$1; shift
if [ -d /run/systemd/units ]; then for v; do [ ! -L "/run/systemd/units/invocation:$v.service" ] || p "$key" "$v"; done; return; fi
systemctl is-active "$@" 2>/dev/null | while read -r v; do [ "$v" != active ] || p "$key" "$1"; shift; done; }`;

/** To be told before anything else under the same keys. */
export const factLines = sh`
for os in /etc/os-release /usr/lib/os-release; do [ ! -r $os ] || { while IFS= read -r v || [ -n "$v" ]; do printf '%s\n' "$v"; done <$os; break; }; done
p arch "$(uname -m)"; r kernel /proc/sys/kernel/osrelease
r machineId /etc/machine-id; r bootId /proc/sys/kernel/random/boot_id; r init /proc/1/comm
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then p cgroup v2; else p cgroup v1; fi
v=; [ ! -r /run/systemd/container ] || IFS= read -r v </run/systemd/container || :
# The words that it has for these, without the program; others it finds out about.
case $v in docker | podman | lxc | systemd-nspawn) ;; *) v=$(systemd-detect-virt 2>/dev/null) || : ;; esac; p virtualisation "$v"
while read -r k v _; do case $k in MemTotal:) p memoryKiB "$v" ;; SwapTotal:) p swapKiB "$v" ;; esac; done </proc/meminfo
p cpus "$(nproc)"
if command -v getenforce >/dev/null; then p selinux "$(getenforce 2>/dev/null)"; else p selinux absent; fi
active firewall firewalld ufw nftables
ip -o addr show 2>/dev/null | while read -r _ dev _ address _; do p address "$dev $address"; done`;

const arches: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  riscv64: "riscv64",
};

export function parseFacts(output: string): Facts {
  const rows = output.split("\n").flatMap((line) => {
    const at = line.indexOf("=");
    return line.startsWith("@") && at > 0 ? [[line.slice(1, at), line.slice(at + 1)] as const] : [];
  });
  const one = (key: string) => rows.find(([name]) => name === key)?.[1] ?? "";
  const all = (key: string) => rows.filter(([name]) => name === key).map(([, value]) => value);
  const machine = one("arch");
  return {
    os: osProfile(output),
    arch: arches[machine] ?? machine,
    kernel: one("kernel"),
    machineId: one("machineId"),
    bootId: one("bootId"),
    cgroup: one("cgroup") === "v2" ? "v2" : "v1",
    init: one("init"),
    virtualisation: one("virtualisation"),
    memoryMiB: Math.floor(Number(one("memoryKiB")) / 1024),
    cpus: Number(one("cpus")),
    swap: Number(one("swapKiB")) > 0,
    selinux: one("selinux").toLowerCase(),
    firewall: all("firewall"),
    addresses: all("address"),
  };
}

/** A point release goes by another name, and by nothing else. */
const isSameOs = (one: OsProfile, other: OsProfile) => isDeepStrictEqual({ ...one, name: "" }, { ...other, name: "" });

/** The same facts, or those with the system that the host has by now; the others that steps go by are a machine's for good. */
export function withOs(facts: Facts, release: string): Facts {
  const os = osProfile(release);
  return isSameOs(facts.os, os) ? facts : { ...facts, os };
}

const known = new WeakMap<Remote, Promise<Facts>>();

function judged(remote: Remote, output: string): Facts {
  const facts = parseFacts(output);
  if (facts.init === "systemd") return facts;
  throw new RemoteError(`its first process is ${facts.init || "unknown"}, not systemd`, {
    host: remote.name,
    reason: "exit",
    advice: "kubexm manages hosts that run systemd.",
  });
}

/** The facts of a host, asked once for each connection. */
export function factsOf(remote: Remote): Promise<Facts> {
  const asked = known.get(remote);
  if (asked) return asked;
  const script = sh`${telling}${factLines}
:`;
  const facts = remote.run(script, { title: "facts", timeout: 60 }).then(({ stdout }) => judged(remote, stdout));
  known.set(remote, facts);
  facts.catch(() => known.delete(remote));
  return facts;
}

/** From what was printed by a question that had them in it: a question less. */
export function learnFacts(remote: Remote, output: string): void {
  try {
    known.set(remote, Promise.resolve(judged(remote, output)));
  } catch {
    // Whoever needs them asks, and tells.
  }
}

const unseen = (id: string): Facts => ({
  ...parseFacts(`ID=${id}\nPRETTY_NAME='not seen yet'`),
  machineId: "",
  arch: "amd64",
});

/** Stands in for a host nobody has looked at yet, so that a first preview can still say what is known. */
export const unknownFacts = unseen("debian");

/** What it may be as well. */
export const otherFacts = unseen("rocky");
