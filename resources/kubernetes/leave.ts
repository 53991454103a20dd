import type { Ask } from "../../provider/ask";
import { sh } from "../../provider/shell";
import type { HostSpec } from "../../provider/ssh/spec";
import { etcdctl } from "./etcd";
import { adminConf, kubectl } from "./paths";

/** While it is there the whole cluster goes: pods have nowhere to move to. */
export const endingMark = "kubexm-ending";

export interface Leaving {
  name: string;
  role: "master" | "worker";
  masters: readonly HostSpec[];
  drain: { timeout: number; force: boolean };
  /** The host does not answer any more, and nobody waits for its pods. */
  lost: boolean;
}

/** One member fewer may not mean no majority. What has no majority already cannot be changed by etcd at all. */
const leaveEtcd = (name: string) => sh`${etcdctl}
members=$(etcdctl member list) || { say "etcd does not answer"; exit 1; }
line=$(printf '%s\n' "$members" | grep ${`, ${name}, `} || :)
if [ -n "$line" ]; then
  id=$(printf %s "$line" | cut -d, -f1)
  total=$(printf '%s\n' "$members" | wc -l)
  health=$(etcdctl endpoint health --cluster 2>&1 || :)
  healthy=$(printf '%s\n' "$health" | grep -c 'is healthy' || :)
  url=$(printf %s "$line" | cut -d, -f5 | tr -d ' ')
  others=$healthy
  if [ -n "$url" ] && printf '%s\n' "$health" | grep -q "$url is healthy"; then others=$((healthy - 1)); fi
  if [ "$others" -lt $(((total - 1) / 2 + 1)) ]; then
    if [ -z "$ending" ]; then
      say "without ${name} only $others of $((total - 1)) members of etcd would be healthy, which is no majority: the cluster would stop"
      say "bring the others back first"
      exit 1
    fi
  else etcdctl member remove "$id" >/dev/null || exit 1; fi
fi`;

/** Drained, then taken off the lists of the others. */
export const leave = ({ name, role, masters, drain, lost }: Leaving): Ask => ({
  hosts: masters,
  title: `take ${name} out of the cluster`,
  run: sh`[ -s ${adminConf} ] || exit 0
export KUBECONFIG=${adminConf}
say() { printf '%s\n' "$*" >&2; }
${kubectl} --request-timeout 20s get --raw /readyz >/dev/null || exit 1
ending=$(${kubectl} -n kube-system get configmap ${endingMark} -o name 2>/dev/null || :)
ready=$(${kubectl} get node ${name} -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null || :)
if [ -z "$ending" ] && [ -n "$ready" ]; then
  gone=
  # A node that has fallen silent cannot end its pods: they count as gone soon after they were told to.
  if [ "$ready" != True ] || [ ${lost ? "yes" : "no"} = yes ]; then gone=--skip-wait-for-delete-timeout=1; fi
  out=$(${kubectl} drain ${name} --ignore-daemonsets --delete-emptydir-data --timeout ${`${drain.timeout}s`} ${drain.force || lost ? ["--force"] : []} $gone 2>&1) || {
    printf '%s\n' "$out" | tail -n 8 >&2
    say "${name} was not drained within ${drain.timeout} s and takes no new pods now: mend what holds it (a PodDisruptionBudget?), or allow more with kubernetes.drain"
    exit 1
  }
fi
${role === "master" ? leaveEtcd(name) : sh``}
[ -z "$ready" ] || ${kubectl} delete node ${name} >/dev/null || exit 1
echo ${`${name} is no longer in the cluster`}`,
  timeout: drain.timeout + 120,
});
