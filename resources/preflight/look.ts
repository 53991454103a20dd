import { factLines, telling } from "../../provider/facts";
import { lines, literal, sh, type Command } from "../../provider/shell";
import { memberId } from "../kubernetes/paths";
import type { Asked, Reach } from "./asked";
import { UNITS } from "./seen";

/**
 * What preflight asks of a host, as one script: lines of `@key=value`. It starts few programs, as 80 hosts are asked at
 * once, and changes nothing; the one file it writes, to time the disk under etcd, is gone when it ends.
 */
export function lookText(asked: Asked): Command {
  return sh`
export LC_ALL=C${telling}
p time "$(date +%s.%N)"
${factLines}
${machine}
${modules(asked.modules)}
${existing}
${asked.etcdDir === undefined ? sh`:` : besidesEtcd(asked.etcdDir)}
${network}
${asked.ipv6 ? advertised : sh`:`}
${zone(asked.zone)}
${room(Object.keys(asked.disk))}
${asked.etcdDir === undefined ? sh`:` : timeDisk(asked.etcdDir)}
${probe(asked.reach, true)}
wait
p end .`;
}

/** Only tries the way to others. */
export const reachText = (reach: readonly Reach[]): Command => sh`export LC_ALL=C${telling}
${probe(reach, false)}`;

const machine = sh`
r hostname /proc/sys/kernel/hostname; r uuid /sys/class/dmi/id/product_uuid
r enforce /sys/fs/selinux/enforce; r container /run/systemd/container
IFS= read -r h </proc/sys/kernel/hostname
while read -r a names; do case "$a $names" in '#'*manage_etc_hosts*) p rewritten . ;; esac; case $a in 127.* | ::1) case " ${literal("${names%%#*}")} " in *[[:space:]]"$h"[[:space:]]*) p loopback "$a" ;; esac ;; esac; done 2>/dev/null </etc/hosts
for f in /etc/sysctl.d/*.conf; do
if [ -r "$f" ] && [ "${literal("${f##*/}")}" \> 99-kubexm-cri.conf ]; then while IFS= read -r v; do case $v in [a-z]*=*) p later "$f $v" ;; esac; done <"$f"; fi; done
r limit /sys/fs/cgroup/memory.max; r limit /sys/fs/cgroup/memory/memory.limit_in_bytes
while read -r k v s _; do case $k in Filename | "") ;; *) p swap "$k" ;; esac; done </proc/swaps
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then r controllers /sys/fs/cgroup/cgroup.controllers
else while read -r k _ _ v; do [ "$v" != 1 ] || p controllers "$k"; done </proc/cgroups; fi
`;

/** Loaded, built in, or there to be loaded; in a container only the machine can say. */
const modules = (names: readonly string[]) => sh`
IFS= read -r release </proc/sys/kernel/osrelease
while read -r a b; do systems="$systems $a $b "; done </proc/filesystems
module() {
if [ -d "/sys/module/$2" ] || { [ $2 = br_netfilter ] && [ -d /proc/sys/net/bridge ]; }; then p module "$1 loaded"; return; fi
case $systems in *" $1 "*) p module "$1 loaded"; return ;; esac
if grep -qs "/$1\.ko\|/$2\.ko" "/lib/modules/$release/modules.builtin"; then p module "$1 built-in"
elif modprobe -n -q "$1" 2>/dev/null; then p module "$1 there"
elif [ ! -d "/lib/modules/$release" ] || systemd-detect-virt -cq; then p module "$1 unknown"
else p module "$1 missing"; fi; }
${lines(...names.map((name) => sh`module ${name} ${name.replaceAll("-", "_")}`))}`;

/** What somebody else, or an earlier run of ours, set up. What our ledger holds is told beside it. */
const existing = sh`
has() { for f; do if [ -e "$f" ]; then return 0; fi; done; return 1; }
version() { timeout 3 "$@" 2>/dev/null | tr -d '\n' | cut -c1-80; }
for u in kubelet etcd containerd docker crio isulad k3s k3s-agent rke2-server rke2-agent k0scontroller k0sworker snap.microk8s.daemon-kubelite; do
for d in /etc/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system; do
if [ -e "$d/$u.service" ]; then p unit "$u $d/$u.service"; break; fi; done; done
for b in kubelet kubeadm etcd containerd dockerd crio isulad k3s rke2 k0s; do
f=$(command -v $b 2>/dev/null) || { f=/usr/local/bin/$b; [ -x $f ] || continue; }
case $b in kubeadm) v=$(version "$f" version -o short) ;; k0s) v=$(version "$f" version) ;; *) v=$(version "$f" --version) ;; esac
p binary "$b $f $v"
done
for f in /etc/kubernetes/*.conf /etc/kubernetes/manifests/*.yaml /var/lib/kubelet/config.yaml /var/lib/kubelet/pki /var/lib/etcd/member /var/lib/rancher /var/lib/k0s /etc/cni/net.d/*; do
if [ -e "$f" ]; then p left "$f"; fi; done
for e in /var/lib/kubexm/ledger/*/id; do
if [ -f "$e" ]; then IFS= read -r id <"$e" || :
case $id in *kube* | *etcd* | *containerd* | *docker* | *cri* | *cni* | *isula* | *haproxy* | *nginx* | *keepalived* | *registry*) p ledger "$id" ;;
${memberId}) for o in "${literal("${e%/id}")}"/owners/*; do [ ! -e "$o" ] || p place "${literal("${o##*/}")}"; done ;; esac; fi
done`;

/** What stands where etcd is to keep its data, and is none of it. */
const besidesEtcd = (dir: string) =>
  sh`[ ! -d ${dir} ] || ls -A -- ${dir} | grep -vx member | head -n 6 | while IFS= read -r v; do p besides "$v"; done`;

/** To list rules of the old kind would load their kernel module where there are none. */
const bareRules = sh`
case $(iptables -V 2>/dev/null) in *nf_tables*) rules=there ;; *) rules=; if grep -qsx filter /proc/net/ip_tables_names; then rules=there; fi ;; esac
[ -z "$rules" ] || iptables -S INPUT 2>/dev/null | while IFS= read -r v; do
case $v in '-P INPUT DROP' | '-A INPUT -j DROP' | '-A INPUT -j REJECT'*) p iptables "$v"; break ;; esac; done`;

const network = sh`
for d in /sys/class/net/*; do
i=${literal("${d##*/}")}; IFS= read -r type <"$d/type" || :
case $i:$type in lo:* | docker* | veth* | cni* | flannel* | br-* | cali* | kube-* | virbr* | cilium* | dummy* | nodelocaldns*) continue ;; esac
[ "$type" != 1 ] || r mac "$d/address"
done
if command -v ss >/dev/null; then ss -Hlntup 2>/dev/null || p sockets unknown; else p sockets unknown; fi
while read -r k v _; do [ "$k" != nameserver ] || p nameserver "$v"; done 2>/dev/null </etc/resolv.conf
active active ${UNITS}
if [ -f /etc/ufw/ufw.conf ] && grep -qs '^ENABLED=yes' /etc/ufw/ufw.conf && command -v ufw >/dev/null; then p ufw on; fi
${bareRules}`;

/** Where a daemon listens to the advertisements, the kernel does not; where it forwards already, it has lost its routes before. */
const advertised = sh`
for d in /proc/sys/net/ipv6/conf/*; do
i=${literal("${d##*/}")}; IFS= read -r v 2>/dev/null <"$d/accept_ra" && IFS= read -r k 2>/dev/null <"$d/forwarding" || continue
case $i:$v:$k in all:* | default:*) ;; *:1:0) [ -z "$(ip -6 route show default dev "$i" proto ra 2>/dev/null)" ] || p advertised "$i" ;; esac
done`;

const zone = (name: string | undefined) => sh`
p zone "$(readlink -f /etc/localtime)"
${name === undefined ? sh`:` : sh`[ -e /usr/share/zoneinfo/${name} ] || { [ ! -d /usr/share/zoneinfo/Etc ] && p zones none || p zones unknown; }`}`;

/** Free space where each path is, or will be: as many lines as paths, in their order. */
const room = (paths: readonly string[]) =>
  paths.length === 0
    ? sh`:`
    : sh`
up() { at=$1; while [ ! -e "$at" ]; do at=${literal("${at%/*}")}; [ -n "$at" ] || at=/; done; }
${lines(...paths.map((path) => sh`up ${path}; set -- "$@" "$at"; p path ${path}`))}
df -Pk -- "$@" | { read -r _; while read -r _ _ _ free _ mount; do p room "$free $mount"; done; }`;

/**
 * How long etcd's disk takes to have a record written for good: single writes of etcd's size. None begins later than
 * 2 seconds after the first, however slow the disk; the clock that is asked before each is one that needs no program.
 */
const timeDisk = (dir: string) => sh`
if [ ! -d ${dir}/member ]; then (
at=${dir}; while [ ! -d "$at" ]; do at=$(dirname "$at"); done
file=$(mktemp "$at/.kubexm-preflight.XXXXXX") || exit 0
trap 'rm -f "$file"' EXIT
hundredths() { IFS=' .' read -r whole part _ </proc/uptime && now=$whole$part; }
hundredths; end=$((now + 200)) n=0
while [ $n -lt 200 ] && hundredths && [ "$now" -lt $end ]; do
dd if=/dev/zero of="$file" bs=2300 count=1 seek=$n oflag=dsync conv=notrunc 2>&1 | sed -n 's/^.*copied, \([0-9.e-]*\) s.*/@write=\1/p'
n=$((n + 1))
done ) & fi`;

/** bash alone can open connections without a program that a host may lack. Everything at once, at most 2 seconds. */
const PROBE = `
tcp() {
  local said
  if said=$( { exec 3<>"/dev/tcp/$2/$3"; } 2>&1 ); then echo "@reach=$1 $3 open"; return; fi
  case $said in
    *refused*) echo "@reach=$1 $3 closed" ;;
    *resolve* | *"not known"* | *servname*) echo "@reach=$1 $3 unknown-name" ;;
    *) echo "@reach=$1 $3 refused-by-firewall" ;;
  esac
}
dns() {
  exec 3<>"/dev/udp/$1/53" || return
  printf '\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x01' >&3
  if IFS= read -r -N 1 -t 2 -u 3 byte; then echo "@answers=$1"; fi
}
all=()
while read -r kind a b c; do
  case $kind in tcp) tcp "$a" "$b" "$c" & ;; dns) dns "$a" 2>/dev/null & ;; esac
  all+=($!)
done
( exec >/dev/null 2>&1; read -r -t 2 <> <(:); kill "\${all[@]}" ) & guard=$!
wait "\${all[@]}"; kill $guard
`;

function probe(reach: readonly Reach[], dns: boolean): Command {
  const targets = reach.flatMap(({ host, address, ports }) => ports.map((port) => `tcp ${host} ${address} ${port}`));
  return sh`
if command -v bash >/dev/null; then
{ ${dns ? nameservers : sh`:`}
${targets.length === 0 ? sh`:` : sh`printf '%s\n' ${targets}`}
} | bash -c ${PROBE} 2>/dev/null
else p bash none; fi`;
}
const nameservers = sh`while read -r k v _; do [ "$k" != nameserver ] || echo "dns $v"; done 2>/dev/null </etc/resolv.conf`;
