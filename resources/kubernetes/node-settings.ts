import { literal, sh, type Command } from "../../provider/shell";
import type { Step } from "../../provider/step";
import { controlPlaneTaint } from "./kubeadm-config";
import { adminConf, kubectl } from "./paths";

const run = sh`${kubectl} --request-timeout 20s`;
const template = `{{range $k, $v := .metadata.labels}}{{$k}}={{$v}}{{"\\n"}}{{end}}{{range .spec.taints}}{{.key}}{{with .value}}={{.}}{{end}}:{{.effect}}{{"\\n"}}{{end}}`;

/** What kubectl's verb takes each of them away with: a sed script over the word that sets it. */
const takenAwayBy = {
  label: "s/=.*/-/",
  taint: "s/=[^:]*//; s/$/-/",
} as const;

/** What a node has one of is a label's key, and a taint's key with its effect. */
const keyAndEnd = {
  label: literal("key=${word%%=*} end="),
  taint: literal("key=${word%%[=:]*} end=:${word##*:}"),
} as const;

/**
 * Labels or taints of a node; those that others set stay, and a value from before comes back in the end. What is unwanted goes,
 * whoever set it.
 */
export function nodeSettings(
  node: string,
  kind: keyof typeof takenAwayBy,
  wanted: readonly string[],
  unwanted: readonly string[] = [],
): Step {
  const unset = takenAwayBy[kind];
  // An empty value is none.
  const sorted = wanted.map((word) => (kind === "taint" ? word.replace("=:", ":") : word)).sort();
  // kubeadm sets that one, and where it may not be it is unwanted: nobody has to remember whose it is.
  const remembered = sorted.some((word) => word !== controlPlaneTaint);
  const now = sh`all=$(${run} get node ${node} -o ${`go-template=${template}`})`;
  // kubelet registers its node some seconds after it joined, and later where the API server was away.
  const patiently = (attempt: Command) => sh`left=30
until { ${attempt}; } 2>/dev/null; do
  left=$((left - 1))
  if [ $left = 0 ]; then
    ${attempt} || { say ${`if the cluster does not know ${node} any more, somebody deleted it there; it leaves and joins anew, its pods' network included, by: kubexm up --refresh --replace '**::CLUSTER-${node}-node'`}; return 1; }
    break
  fi
  sleep 1
done`;
  return {
    id: `${kind}s of node ${node}`,
    want: { [`${kind}s`]: sorted.join(" ") || "none" },
    shown: { text: sorted.map((word) => `${word}\n`).join("") },
    // Of what is there: what is wanted or stands in its place, what is ours, and what may not be.
    look: sh`if [ ! -s ${adminConf} ]; then kv ${kind}s unknown; return 0; fi
${now} || { kv ${kind}s unknown; return 0; }
set -- $all
there=" $* " found=
for word in ${sorted}; do
  ${keyAndEnd[kind]}
  for one; do case $one in "$key$end" | "$key="*"$end") found="$found $one" ;; esac; done
done
for word in $(cat "$entry/ours" 2>/dev/null) ${unwanted}; do
  case "$found " in *" $word "*) ;; *) case $there in *" $word "*) found="$found $word" ;; esac ;; esac
done
[ -n "$found" ] || found=" none"
# By another master, or with a record that was lost: what is not on record would stay when it is no longer wanted.
[ ${remembered ? "yes" : "no"} = no ] || [ -f "$entry/ours" ] || found="$found (not on record)"
kv ${kind}s ${literal('"${found# }"')}`,
    save: sh`${patiently(now)}
printf '%s\n' "$all" >had`,
    make: sh`${patiently(sh`${run} get node ${node} -o name >/dev/null`)}
if [ -f ours ]; then
  while IFS= read -r word; do
    case ${` ${sorted.join(" ")} `} in *" $word "*) ;; *) ${run} ${kind} node ${node} "$(printf '%s\n' "$word" | sed ${unset})" >/dev/null 2>&1 || : ;; esac
  done <ours
fi
for word in ${unwanted}; do ${run} ${kind} node ${node} "$(printf '%s\n' "$word" | sed ${unset})" >/dev/null 2>&1 || :; done
printf '%s\n' ${sorted.length === 0 ? "" : sorted} >ours
[ ${sorted.length} = 0 ] || ${run} ${kind} node ${node} --overwrite ${sorted} >/dev/null`,
    undo: sh`[ -s ${adminConf} ] && [ -f ours ] || exit 0
${run} --request-timeout 10s get node ${node} -o name >/dev/null 2>&1 || exit 0
while IFS= read -r word; do
  [ -n "$word" ] || continue
  key=$(printf '%s\n' "$word" | sed 's/[=:].*//')
  before=$(grep -e "^$key[=:]" had | head -n 1)
  if [ -n "$before" ]; then ${run} ${kind} node ${node} --overwrite "$before" >/dev/null || :
  else ${run} ${kind} node ${node} "$(printf '%s\n' "$word" | sed ${unset})" >/dev/null 2>&1 || :; fi
done <ours`,
  };
}
