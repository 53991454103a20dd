import { createHash } from "node:crypto";
import { sh, verbatim } from "../../provider/shell";
import type { Step } from "../../provider/step";
import { adminConf, kubectl } from "./paths";

const field = sh`--server-side --field-manager kubexm`;

/** Objects in the cluster, applied by the server: what others add to them stays, what they change of ours is noticed. */
export function manifest(name: string, yaml: string): Step {
  const text = yaml.endsWith("\n") ? yaml : `${yaml}\n`;
  const sum = createHash("sha256").update(text).digest("hex");
  const config = sh`--request-timeout 60s`;
  const body = sh`<<'KX_MANIFEST'
${verbatim(text, "KX_MANIFEST")}KX_MANIFEST`;
  return {
    id: `objects ${name}`,
    want: { applied: sum, objects: "as applied" },
    look: sh`applied_for
[ -f "$entry/applied" ] || return 0
out=$(${kubectl} diff ${config} ${field} --force-conflicts -f - 2>&1 ${body}
)
case $? in 0) kv objects 'as applied' ;; 1) kv objects changed ;; *) kv objects unknown ;; esac`,
    make: sh`cat >objects.yaml ${body}
# A deletion that was begun goes on by itself, and takes along what is put there meanwhile.
left=90
while [ -n "$(${kubectl} get ${config} --ignore-not-found -o 'jsonpath={..metadata.deletionTimestamp}' -f objects.yaml)" ]; do
  left=$((left - 1))
  [ $left -gt 0 ] || { say "what is there of ${name} is being deleted, and that does not end: see kubectl get namespaces"; return 1; }
  sleep 1
done
${kubectl} apply ${config} ${field} --force-conflicts -f objects.yaml >/dev/null
printf %s ${sum} >applied`,
    undo: sh`[ -s ${adminConf} ] && [ -f objects.yaml ] || exit 0
if ${kubectl} ${config} --request-timeout 10s get --raw /readyz >/dev/null 2>&1; then
  ${kubectl} delete ${config} --ignore-not-found --wait=false -f objects.yaml >/dev/null || :
fi`,
    shown: { text },
  };
}
