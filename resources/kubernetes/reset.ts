import { sh } from "../../provider/shell";
import { adminConf, criSocket, kubeadm } from "./paths";

/** Ends all pods and takes off the host what kubeadm put there. The others have taken it off their lists before. */
export const resetNode = sh`
reset_node() {
  systemctl stop kubelet 2>/dev/null || :
  # With it kubeadm would ask an API server that may be gone.
  rm -f ${adminConf}
  ${kubeadm} reset -f --cri-socket ${criSocket} --skip-phases=preflight,remove-etcd-member >reset.log 2>&1 || { tail -n 10 reset.log >&2; return 1; }
  rm -f reset.log
  [ ! -d /var/lib/etcd ] || find /var/lib/etcd -mindepth 1 -delete
}`;

/** What kube-proxy and flannel leave in the kernel. Rules of others stay. */
export const cleanNetwork = sh`
clean_network() {
  for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0 nodelocaldns; do
    [ ! -e "/sys/class/net/$link" ] || ip link delete "$link" || :
  done
  for tables in iptables ip6tables iptables-legacy ip6tables-legacy; do
    command -v "$tables-save" >/dev/null 2>&1 || continue
    rules=$("$tables-save" 2>/dev/null) || continue
    case $rules in *KUBE-* | *FLANNEL-* | *CNI-*) printf '%s\n' "$rules" | grep -v 'KUBE-\|FLANNEL-\|CNI-' | "$tables-restore" ;; esac
  done
  if command -v nft >/dev/null 2>&1; then
    for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || :; done
  fi
  rm -rf /run/flannel
}`;
