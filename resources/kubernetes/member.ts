import { createHash } from "node:crypto";
import type { Ask } from "../../provider/ask";
import { sh, verbatim, type Command } from "../../provider/shell";
import type { HostSpec } from "../../provider/ssh/spec";
import type { Step } from "../../provider/step";
import { etcdDirAdvice, etcdDirMayBeShared } from "../config/etcd-dir";
import { watchControlPlane } from "./control-plane-watch";
import { etcdctl, grepMember } from "./etcd";
import { joinConfiguration, type JoinSettings } from "./kubeadm-config";
import { adminConf, kubeadm, kubeadmConf, kubectl, memberId, servingMaster } from "./paths";
import { bringCniBack, cleanKernel, memberIn, resetNode, saveKernel, setCniAside } from "./reset";

export const short = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);

export interface Membership extends JoinSettings {
  /** Begins the cluster if no master has one. */
  first: boolean;
  masters: readonly HostSpec[];
  /** Of a master: where its etcd keeps the data. */
  etcdDir?: string;
  /** Mark of the settings that a control plane is made with. */
  settings: string;
  leftovers: "refuse" | "clean";
}

/** By which a cluster is known. */
const caSum = sh`sha256sum </etc/kubernetes/pki/ca.crt | cut -c1-64`;

/** kubeadm waits for minutes for a member that is dead, and then says that it was in vain. */
const allAnswer = (name: string) => sh`
silent() {
  members=$(etcdctl member list) || exit 1
  health=$(etcdctl endpoint health --cluster 2>&1 || :)
  # Learners are asked nothing, and one that never started has no address.
  printf '%s\n' "$members" | grep -v ', true$' | tr -d ' ' | while IFS=, read -r _ _ member _ url _; do
    case $health in *"$url is healthy"*) ;; *) printf ' %s' "$member" ;; esac
  done
}
left=3
while dead=$(silent) || exit 1; [ -n "$dead" ]; do
  left=$((left - 1))
  [ $left -gt 0 ] || {
    say "members of etcd do not answer:$dead; while that is so, no further master can join"
    say ${`bring them back first; those that are gone for good have to leave before ${name} comes: take them and ${name} out of cluster.yaml, run`} "KUBEXM_FORGET=$(printf %s "$dead" | sed 's/^ //; s/ /,/g') kubexm up," ${`and then add ${name} again`}
    exit 3
  }
  sleep 2
done`;

/** A token for a quarter of an hour and, for a further master, the keys of the cluster. Old entries of the name go. */
const lend = ({ name, local, masters }: Membership, itsCa: string): Command => sh`
[ -s ${adminConf} ] || exit 0
${servingMaster(masters.length)}
${local === undefined ? sh`` : etcdctl}
if [ ${itsCa} != "$(${caSum})" ]; then
${kubectl} delete node ${name} --ignore-not-found >/dev/null || exit 1
${
  local === undefined
    ? sh``
    : sh`for stale in $(etcdctl member list | grep ${grepMember(name, [local.address])} | cut -d, -f1); do etcdctl member remove "$stale" >/dev/null || exit 1; done`
}
fi
${
  local === undefined
    ? sh``
    : sh`${allAnswer(name)}
printf 'keys=%s\n' "$(tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.key sa.pub front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key | base64 | tr -d '\n')"`
}
command=$(${kubeadm} --kubeconfig ${adminConf} token create --ttl 15m --description ${`kubexm: ${name} joins`} --print-join-command) || exit 1
set -- $command
while [ $# -gt 1 ]; do
  case $1 in --token) printf 'token=%s\n' "$2" ;; --discovery-token-ca-cert-hash) printf 'hash=%s\n' "$2" ;; esac
  shift
done
printf 'ca=%s\n' "$(${caSum})"`;

/** A token that has served is worth nothing to anybody. */
const takeBack = sh`token=$(printf '%s\n' "$answer" | sed -n 's/^token=\([^.]*\).*/\1/p')
[ -z "$token" ] || [ ! -s ${adminConf} ] || ${kubeadm} --kubeconfig ${adminConf} token delete "$token" >/dev/null`;

const askMasters = (membership: Membership, itsCa: string): Ask => ({
  hosts: membership.masters,
  title: `ask the masters to let ${membership.name} in`,
  run: lend(membership, itsCa),
  after: takeBack,
  timeout: 120,
});

/** What stands where etcd is to keep its data, and is not of an etcd. */
const othersInEtcdDir = ({ etcdDir, ignored }: Membership) =>
  etcdDir === undefined || etcdDirMayBeShared(etcdDir, ignored)
    ? sh`:`
    : sh`ls -A -- ${etcdDir} 2>/dev/null | grep -vx member | head -n 6 | tr '\n' ' '`;

const checkLeftovers = (membership: Membership) => sh`
left=
for old in /etc/kubernetes/kubelet.conf ${adminConf} /etc/kubernetes/manifests/*.yaml /etc/kubernetes/pki/ca.crt ${
  membership.etcdDir === undefined ? [] : [memberIn(membership.etcdDir)]
}; do
  [ ! -e "$old" ] || left="$left $old"
done
others=$(${othersInEtcdDir(membership)})
if [ -e begun ]; then keep_cni_aside
elif [ -n "$left" ] && [ -n "$answer" ] && [ "$(part ca)" = "$(${caSum})" ]; then
  # Its record was lost, but it is one of us.
  adopted=yes
elif [ -n "$others" ]; then
  say ${`etcd is to keep its data in ${membership.etcdDir ?? ""}, which is not empty: `}"$others"
  say ${etcdDirAdvice(membership.etcdDir ?? "")}
  return 1
elif [ ${membership.leftovers} = clean ]; then
  set_cni_aside || return 1
  [ -z "$left" ] || { note "what an earlier installation left was removed:$left"; reset_node && clean_kernel || return 1; }
elif [ -n "$left" ]; then
  say "this host is or was a node of another cluster:$left"
  say "take it out of that one, or let kubexm clean it: kubernetes.leftovers: clean"
  return 1
fi`;

const join = (membership: Membership) => sh`
join() {
  [ -z "$again" ] || { reset_node && clean_kernel; } || return 1
  ${
    membership.local === undefined
      ? sh`:`
      : sh`mkdir -p /etc/kubernetes/pki && (umask 077 && part keys | base64 -d | tar -C /etc/kubernetes/pki --no-same-owner -xf -) || return 1`
  }
  # Arguments can be read by every user of the host, a descriptor cannot.
  config=$(sed -f /dev/fd/4 4<<KX_SED <<'KX_JOIN'
s/@TOKEN@/$(part token)/
s/@HASH@/$(part hash)/
KX_SED
${verbatim(joinConfiguration(membership), "KX_JOIN")}KX_JOIN
)
  guarded ${kubeadm} join --config /dev/stdin 3<<KX_CONFIG
$config
KX_CONFIG
}`;

/** A second try goes on with what the first one made: a cluster that already answers is never thrown away. */
const init = sh`
# kubeadm makes a token for a day, every time anew, and nobody needs it.
no_tokens() { ${kubectl} -n kube-system delete secrets --field-selector type=bootstrap.kubernetes.io/token >/dev/null || :; }
begin() {
  set -- ${kubeadm} init --config ${kubeadmConf} --skip-token-print --skip-phases=show-join-command
  if [ -n "$again" ] && [ -s ${adminConf} ]; then
    if guarded "$@" --ignore-preflight-errors=all 3</dev/null; then no_tokens; return; fi
    if ${kubectl} --request-timeout 10s -n kube-system get configmap kubeadm-config >/dev/null 2>&1; then return 1; fi
  fi
  [ -z "$again" ] || { reset_node && clean_kernel; } || return 1
  guarded "$@" 3</dev/null || return 1
  : >began
  no_tokens
}`;

/** The host is a node of the cluster: begins it, or joins it, and leaves it in the end. */
export const member = (membership: Membership): Step => ({
  id: memberId,
  want: { member: "yes" },
  renews: `node ${membership.name}`,
  look: sh`if [ -f "$entry/member" ] && [ -s /etc/kubernetes/kubelet.conf ]; then kv member yes; else kv member no; fi
# One of us whose record was lost; what was only begun is made anew.
if [ ! -e "$entry/begun" ] && [ -s /etc/kubernetes/kubelet.conf ] && [ -s /etc/kubernetes/pki/ca.crt ]; then kv ca "$(${caSum})"; fi`,
  save: saveKernel,
  make: sh`${watchControlPlane}
${resetNode(membership.etcdDir)}
${cleanKernel}
${setCniAside}
${join(membership)}
${init}
part() { printf '%s\n' "$answer" | sed -n "s/^$1=//p"; }
again= adopted=
[ ! -e begun ] || again=yes
${checkLeftovers(membership)}
if [ -z "$adopted" ]; then
  [ -n "$answer" ] || [ ${membership.first ? "yes" : "no"} = yes ] || { say "none of the masters has a cluster yet"; return 1; }
  : >begun
  if [ -n "$answer" ]; then join; else begin; fi || return 1
fi
printf '%s\n' ${membership.settings} >member`,
  undo: sh`${resetNode(membership.etcdDir)}
${cleanKernel}
${bringCniBack}
# A host that was refused is still somebody else's node: only what was begun or taken over here is taken back, and where
# that is cut off, the next one goes on with it.
if [ -e begun ] || [ -e member ]; then
  : >begun
  rm -f member
  reset_node
  clean_kernel
fi
bring_cni_back`,
  ask: ({ ca = "none" }) => askMasters(membership, ca),
  timeout: 900,
});
