import type { Ask } from "../../provider/ask";
import { sh } from "../../provider/shell";
import type { HostSpec } from "../../provider/ssh/spec";
import { watchControlPlane } from "./control-plane-watch";
import { etcdctl, grepMember } from "./etcd";
import { adminConf, kubectl, servingMaster } from "./paths";

/** While they are there the whole cluster goes: pods have nowhere to move to, and nobody is told. */
export const endingMark = "kubexm-ending";
export const endingFile = "/run/kubexm-ending";

export interface Leaving {
  name: string;
  role: "master" | "worker";
  /** Of the node: a member of etcd that never started has no name. */
  addresses: readonly string[];
  masters: readonly HostSpec[];
  drain: { timeout: number; force: boolean };
  /** The host does not answer any more, and nobody waits for its pods. */
  lost: boolean;
}

/**
 * One member fewer may not mean no majority; what has no majority already cannot be changed by etcd at all. It is asked anew
 * before the member goes: draining takes minutes, and another may have died meanwhile.
 */
const etcdMember = ({ name, addresses }: Leaving) => sh`${watchControlPlane}
${etcdctl}
drained=
may_leave_etcd() {
  members=$(etcdctl member list) || { say "etcd does not answer"; exit 1; }
  line=$(printf '%s\n' "$members" | grep ${grepMember(name, addresses)} | head -n 1)
  url=$(printf %s "$line" | cut -d, -f5 | tr -d ' ')
  # A learner has no vote.
  case $line in '' | *', true') return 0 ;; esac
  total=$(printf '%s\n' "$members" | grep -vc ', true$' || :)
  health=$(etcdctl endpoint health --cluster 2>&1 || :)
  others=$(printf '%s\n' "$health" | grep -c 'is healthy' || :)
  if [ -n "$url" ] && printf '%s\n' "$health" | grep -q "$url is healthy"; then others=$((others - 1)); fi
  [ "$others" -lt $(((total - 1) / 2 + 1)) ] || return 0
  say "without ${name} only $others of $((total - 1)) members of etcd would be healthy, which is no majority: the cluster would stop"
  say "bring the others back first; if the whole cluster is to go: kubexm destroy, with KUBEXM_FORGET for those that are lost"
  [ -z "$drained" ] || say "${name} is drained and takes no new pods now; if it is to stay: kubectl uncordon ${name}"
  exit 3
}
leave_etcd() {
  [ -n "$line" ] || return 0
  # A leader that removes itself can stop before the others know of it.
  own=$(printf '%s\n' "$members" | grep ", $(cat /proc/sys/kernel/hostname), " | cut -d, -f1)
  [ -z "$url" ] || etcdctl --endpoints "$url" move-leader "$own" >/dev/null 2>&1 || :
  etcdctl member remove "$(printf %s "$line" | cut -d, -f1)" >/dev/null || return 1
  await_control_plane 60
}
may_leave_etcd`;

/** Drained, then taken off the lists of the others. */
export function leave(leaving: Leaving): Ask {
  const { name, role, masters, drain, lost } = leaving;
  return {
    hosts: masters,
    title: `take ${name} out of the cluster`,
    run: sh`[ -s ${adminConf} ] || exit 0
# A run that was killed may still be at it here.
exec 8>>${`/run/kubexm-leaving-${name}`} && flock 8 || exit 1
if [ -e ${endingFile} ]; then echo ${`${name} goes with its cluster`}; exit 0; fi
${servingMaster(masters.length)}
if [ -n "$(${kubectl} -n kube-system get configmap ${endingMark} --ignore-not-found -o name)" ]; then
  : >${endingFile}
  echo ${`${name} goes with its cluster`}
  exit 0
fi
${role === "master" ? etcdMember(leaving) : sh``}
node=$(${kubectl} get node ${name} --ignore-not-found -o 'jsonpath={.metadata.name} {.status.conditions[?(@.type=="Ready")].status}') || exit 1
if [ -n "$node" ]; then
  gone=
  # A node that has fallen silent cannot end its pods: they count as gone soon after they were told to.
  if [ "$node" != ${`${name} True`} ] || [ ${lost ? "yes" : "no"} = yes ]; then gone=--skip-wait-for-delete-timeout=1; fi
  out=$(${kubectl} drain ${name} --ignore-daemonsets --delete-emptydir-data --timeout ${`${drain.timeout}s`} ${drain.force || lost ? ["--force"] : []} ${lost ? ["--disable-eviction"] : []} $gone 2>&1) || {
    printf '%s\n' "$out" | tail -n 8 >&2
    # Where only this API server fails, another master may do it.
    ${kubectl} --request-timeout 20s get --raw /readyz >/dev/null || exit 1
    say "${name} was not drained within ${drain.timeout} s and takes no new pods now: mend what holds it (a PodDisruptionBudget?), or allow more with kubernetes.drain"
    exit 3
  }
  drained=yes
fi
${role === "master" ? sh`may_leave_etcd` : sh``}
[ -z "$node" ] || ${kubectl} delete node ${name} --ignore-not-found >/dev/null || exit 1
${role === "master" ? sh`leave_etcd || exit 1` : sh``}
echo ${`${name} is no longer in the cluster`}`,
    timeout: drain.timeout + 120,
  };
}
