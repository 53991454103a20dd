import { sh } from "../../provider/shell";
import { criSocket } from "../runtime/paths";
import { adminConf, kubeadm } from "./paths";

/** What etcd makes in its folder. */
export const memberIn = (etcdDir: string) => `${etcdDir}/member`;

/**
 * Ends all pods and takes off the host what kubeadm put there. The others have taken it off their lists before. Where the host
 * was given an etcd, its member's data goes; whatever else is in that folder is not etcd's.
 */
export const resetNode = (etcdDir?: string) => sh`
reset_node() {
  systemctl stop kubelet 2>/dev/null || :
  # With it kubeadm would ask an API server that may be gone.
  rm -f ${adminConf}
  # It unmounts and removes all there is below kubelet's folder, on disks of the administrator's too.
  hold_mounts /var/lib/kubelet || return 1
  ${kubeadm} reset -f --cri-socket ${criSocket} --skip-phases=preflight,remove-etcd-member >reset.log 2>&1 || { tail -n 10 reset.log >&2; bring_mounts; return 1; }
  rm -f reset.log
  bring_mounts || return 1
  ${etcdDir === undefined ? sh`:` : sh`rm -rf --one-file-system -- ${memberIn(etcdDir)}`}
}`;

const cniDir = "/etc/cni/net.d";

/** Of all network plugins' configurations the first by name counts: one that an earlier installation left, rather than ours. */
export const setCniAside = sh`
keep_cni_aside() {
  for file in cni/*; do gone ${cniDir}/"$(basename "$file")"; done
}
set_cni_aside() {
  for file in ${cniDir}/*; do
    if [ ! -e "$file" ] && [ ! -L "$file" ]; then continue; fi
    set_aside "$file" cni || return 1
    note "$file of an earlier installation was set aside, and comes back when this node goes"
  done
}`;

/** Copies, so that a node which is wanted again after an undo that was cut off knows what is not its own. */
export const bringCniBack = sh`
bring_cni_back() {
  for file in cni/*; do
    if [ ! -e "$file" ] && [ ! -L "$file" ]; then continue; fi
    at=${cniDir}/$(basename "$file")
    mkdir -p ${cniDir} && gone "$at" && put_back "$file" "$at" || return 1
  done
}`;

/** Settings of the kernel that kubelet, kube-proxy and flannel change by themselves, and folders they want to be there. */
const changed = [
  "kernel.panic",
  "kernel.panic_on_oops",
  "kernel.keys.root_maxkeys",
  "kernel.keys.root_maxbytes",
  "vm.overcommit_memory",
  "vm.panic_on_oom",
  "net.ipv4.conf.all.route_localnet",
  "net.netfilter.nf_conntrack_max",
  "net.netfilter.nf_conntrack_tcp_be_liberal",
  "net.netfilter.nf_conntrack_tcp_timeout_established",
  "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
];
const folders = [
  "/usr/lib/modules",
  "/usr/libexec",
  "/usr/libexec/kubernetes",
  "/usr/libexec/kubernetes/kubelet-plugins",
  "/usr/libexec/kubernetes/kubelet-plugins/volume",
  "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
];

/** Of the table of virtual servers, those that are one. */
const virtualServer = "^(TCP|UDP|SCTP|FWM) ";

export const saveKernel = sh`
for name in ${changed}; do
  at=/proc/sys/$(printf %s "$name" | tr . /)
  if [ -r "$at" ]; then printf '%s %s\n' "$at" "$(cat "$at")" || return 1; fi
done >kernel
for folder in ${folders}; do if [ ! -d "$folder" ]; then printf '%s\n' "$folder" || return 1; fi; done >folders
for tables in iptables ip6tables; do
  if command -v "$tables-save" >/dev/null 2>&1; then "$tables-save" 2>/dev/null | sed -n "s/^\*/$tables /p"; fi
done >tables
! grep -qsE ${virtualServer} /proc/net/ip_vs || : >virtual-servers`;

/** What they leave in the kernel. Rules of others stay, and so do folders in which others have put something since. */
export const cleanKernel = sh`
clean_rules() {
  for tables in iptables ip6tables iptables-legacy ip6tables-legacy; do
    command -v "$tables-save" >/dev/null 2>&1 || continue
    rules=$("$tables-save" 2>/dev/null) || continue
    case $rules in *KUBE-* | *FLANNEL-* | *CNI-*) printf '%s\n' "$rules" | grep -v 'KUBE-\|FLANNEL-\|CNI-' | "$tables-restore" ;; esac
  done
  if command -v nft >/dev/null 2>&1; then
    for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || :; done
  fi
}
clean_ipvs() { # what kube-proxy made in its mode ipvs; where there were others before, nobody can tell them apart
  if grep -qsE ${virtualServer} /proc/net/ip_vs; then
    if [ ! -e virtual-servers ] && command -v ipvsadm >/dev/null 2>&1; then ipvsadm --clear || :
    else note "virtual servers of kube-proxy may be left (ipvsadm -Ln)"; fi
  fi
  command -v ipset >/dev/null 2>&1 || return 0
  for set in $(ipset list -n 2>/dev/null | grep '^KUBE-'); do ipset destroy "$set" || :; done
}
clean_tables() { # those that were not there and are empty again
  command -v nft >/dev/null 2>&1 || return 0
  for row in iptables:ip ip6tables:ip6; do
    tables=$(printf %s "$row" | cut -d: -f1)
    family=$(printf %s "$row" | cut -d: -f2)
    command -v "$tables-save" >/dev/null 2>&1 || continue
    for table in $("$tables-save" 2>/dev/null | sed -n 's/^\*//p'); do
      if grep -qFx "$tables $table" tables || "$tables-save" -t "$table" | grep -q '^-A\|^:[^ ]* - '; then continue; fi
      nft delete table $family "$table" 2>/dev/null || :
    done
  done
}
clean_kernel() {
  for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0; do
    [ ! -e "/sys/class/net/$link" ] || ip link delete "$link" || :
  done
  clean_rules
  clean_ipvs
  [ ! -f tables ] || clean_tables
  rm -rf /run/flannel /run/kubexm-kubectl /run/kubexm-ending /run/kubexm-leaving-*
  [ ! -f kernel ] || while read -r at value; do
    [ "$(cat "$at")" = "$value" ] || printf '%s\n' "$value" >"$at" 2>/dev/null || :
  done <kernel
  [ ! -f folders ] || LC_ALL=C sort -r folders | while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || :; done
}`;
