import { sh } from "../../provider/shell";
import { crictl } from "../runtime/paths";
import { kubectl } from "./paths";

/**
 * Shell functions for whatever waits for a control plane: they tell within seconds that one of its containers keeps
 * dying, and what its last words were, where kubeadm would wait for four minutes and say that it was in vain.
 */
export const watchControlPlane = sh`
# What ended before, as with every reboot of a master, is no sign that something does not come up now.
earlier=$(${crictl} ps -a -q 2>/dev/null || :) deaths=
last_words() { # NAME ID: kubelet keeps one that ended, and may have removed this one for the next just now
  words=$(${crictl} logs --tail 12 "$2" 2>&1 </dev/null) || words=
  for file in $(ls -t /var/log/pods/kube-system_"$1"-*/"$1"/*.log 2>/dev/null); do
    [ -z "$words" ] || break
    words=$(tail -n 12 "$file" | cut -d ' ' -f 4-)
  done
  printf '%s\n' "$words"
}
crashing() { # names a container that died again and again, of those asked about every few seconds
  while read -r name limit; do
    id=$(${crictl} ps -a --state exited --name "^$name$" -q --latest 2>/dev/null </dev/null | head -n 1)
    [ -n "$id" ] || continue
    case "$earlier $deaths" in *"$id"*) continue ;; esac
    deaths="$deaths $name=$id"
    [ "$(printf '%s\n' $deaths | grep -c "^$name=")" -ge "$limit" ] || continue
    say "$name does not come up; its last words:"
    last_words "$name" "$id" >&2
    return 0
  done <<KX_LIMITS
etcd 3
kube-apiserver 3
kube-controller-manager 4
kube-scheduler 4
KX_LIMITS
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
