import { sh } from "../../provider/shell";
import type { Step } from "../../provider/step";
import { adminConf, kubectl } from "./paths";

const run = sh`${kubectl} --request-timeout 20s`;
const podTemplate = `{{range .items}}{{if and .spec.nodeName (not .metadata.deletionTimestamp) (or (eq .status.phase "Running") (eq .status.phase "Pending"))}}{{.spec.nodeName}} {{.metadata.name}}{{"\\n"}}{{end}}{{end}}`;
/** A node that is cordoned or not ready has a taint that says so. */
const nodeTemplate = `{{range .items}}{{.metadata.name}}{{range .spec.taints}} {{.key}}{{end}}{{"\\n"}}{{end}}`;

/**
 * `pods` becomes the pods of CoreDNS, each after its node, and `only` their one node where they could be on several. Where the
 * scheduler put them together again they stay, until there are other nodes.
 */
const crowded = sh`crowded() { # FOLDER WITH WHAT WAS TRIED
  only=
  pods=$(${run} -n kube-system get pods -l k8s-app=kube-dns -o ${`go-template=${podTemplate}`}) || return 1
  [ "$(printf '%s\n' "$pods" | wc -l)" -gt 1 ] || return 0
  on=$(printf '%s\n' "$pods" | sed 's/ .*//' | sort -u)
  [ "$(printf '%s\n' "$on" | wc -l)" = 1 ] || return 0
  nodes=$(${run} get nodes -o ${`go-template=${nodeTemplate}`}) || return 1
  nodes=$(printf '%s\n' "$nodes" | sed -n 's# node-role.kubernetes.io/control-plane$##; / /!p' | sort)
  [ "$(printf '%s\n' "$nodes" | wc -l)" -gt 1 ] && [ "$nodes" != "$(cat "$1/tried" 2>/dev/null)" ] || return 0
  only=$on
}`;

/**
 * kubeadm starts every CoreDNS while there is one node only, and Kubernetes moves none of them later: all names of the cluster
 * would hang on that host. One of them is started anew, which the scheduler puts onto another node.
 */
export const spreadDns: Step = {
  id: "CoreDNS on more than one node",
  want: { on: "several nodes" },
  look: sh`${crowded}
if [ ! -s ${adminConf} ] || ! crowded "$entry"; then only=unknown; fi
[ -n "$only" ] || only='several nodes'
kv on "$only"`,
  make: sh`${crowded}
crowded . || return 1
[ -n "$only" ] || return 0
${run} -n kube-system delete pod "$(printf '%s\n' "$pods" | sed -n '$s/.* //p')" --wait=false >/dev/null
rm -f tried
for second in 1 2 3 4 5 6 7 8 9 10; do
  crowded . || return 1
  [ "$(printf '%s\n' "$pods" | wc -l)" = 1 ] || break
  sleep 1
done
[ -z "$only" ] || printf '%s\n' "$nodes" >tried`,
  undo: sh`:`,
};
