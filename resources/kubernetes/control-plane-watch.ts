import { sh } from "../../provider/shell";
import { crictl } from "../runtime/paths";
import { kubectl } from "./paths";

/**
 * Shell functions for whatever waits for a control plane: they tell within seconds that one of its containers keeps
 * dying, and what its last words were, where kubeadm would wait for four minutes and say that it was in vain.
 */
export const watchControlPlane = sh`
# A master that was rebooted a few times has containers that ended often, and nothing is wrong with it.
earlier=$(${crictl} ps -a -q 2>/dev/null || :)
crashing() { # names a container that died again and again
  for name in etcd:2 kube-apiserver:2 kube-controller-manager:4 kube-scheduler:4; do
    id=$(${crictl} ps -a --state exited --name "^$(printf %s "$name" | cut -d: -f1)$" -q --latest 2>/dev/null | head -n 1)
    [ -n "$id" ] || continue
    case $earlier in *"$id"*) continue ;; esac
    attempt=$(${crictl} inspect -o go-template --template '{{.status.metadata.attempt}}' "$id" 2>/dev/null)
    [ "$(printf %s "$attempt" | tr -dc 0-9)" -ge "$(printf %s "$name" | cut -d: -f2)" ] 2>/dev/null || continue
    say "$(printf %s "$name" | cut -d: -f1) does not come up; its last words:"
    ${crictl} logs --tail 12 "$id" >&2
    return 0
  done
  return 1
}
guarded() { # COMMAND… 3<INPUT: is ended when the control plane cannot come up
  "$@" >out 2>&1 <&3 &
  pid=$! ticks=0
  while kill -0 $pid 2>/dev/null; do
    sleep 0.5
    ticks=$((ticks + 1))
    if [ $((ticks % 10)) = 0 ] && crashing; then
      kill $pid
      wait $pid || :
      return 1
    fi
  done
  if wait $pid; then rm -f out; return 0; fi
  tail -n 15 out >&2
  rm -f out
  return 1
}
await_control_plane() { # SECONDS
  left=$1
  until ${kubectl} --request-timeout 5s get --raw /readyz >/dev/null 2>&1; do
    left=$((left - 1))
    if [ $((left % 5)) = 0 ] && crashing; then return 1; fi
    [ $left -gt 0 ] || { say "the API server is not ready after $1 s"; ${kubectl} get --raw '/readyz?verbose' 2>&1 | grep -v ok >&2; return 1; }
    sleep 1
  done
}`;
