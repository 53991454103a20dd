import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { endingFile, endingMark } from "./kubernetes/leave";
import { adminConf, kubectl } from "./kubernetes/paths";

const run = sh`${kubectl} --request-timeout 20s -n kube-system`;

export const Kubeconfig = component({
  kind: "Kubeconfig",
  ofCluster: true,
  about:
    "The administrator's kubeconfig. Stands for the cluster as a whole: when it goes, nodes leave without moving pods.",
  args: z.object({
    server: z.url().describe("Address of an API server that can be reached from where kubectl is used"),
  }),
  steps: () => [
    {
      id: "life of the cluster",
      want: { cluster: "stays" },
      look: sh`[ -s ${adminConf} ] || { kv cluster none; return 0; }
[ -d "$entry" ] || { kv cluster unrecorded; return 0; }
mark=$(${run} get configmap ${endingMark} --ignore-not-found -o name) || { kv cluster unknown; return 0; }
if [ -z "$mark" ]; then kv cluster stays; else kv cluster ends; fi`,
      make: sh`rm -f ${endingFile}
${run} delete configmap ${endingMark} --ignore-not-found >/dev/null`,
      undo: sh`[ -s ${adminConf} ] || exit 0
: >${endingFile}
${run} create configmap ${endingMark} >/dev/null 2>&1 || ${run} get configmap ${endingMark} >/dev/null 2>&1 || note "the API server does not answer any more: the nodes go without it"`,
    },
  ],
  reveal: ({ server }) => sh`sed ${`s#^    server: .*#    server: ${server}#`} ${adminConf}`,
});
