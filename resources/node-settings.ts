import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { nodeSettings } from "./kubernetes/node-settings";
import { kubectl } from "./kubernetes/paths";

export const NodeSettings = component({
  kind: "NodeSettings",
  ofCluster: true,
  about:
    "Labels and taints of a node, set on a master; waits until the node is ready and, where asked, has its pod network.",
  args: z.object({
    node: z.string().describe("Name of the node"),
    labels: z.record(z.string(), z.string()).default({}).describe("Labels"),
    taints: z.array(z.string()).default([]).describe("Taints, as `key=value:Effect`"),
    without: z.array(z.string()).default([]).describe("Taints that it may not have, whoever set them"),
    network: z.boolean().default(false).describe("Wait for the pod network too, which tells in the node's conditions"),
    patience: z.number().int().default(180).describe("Seconds until the node must be ready"),
  }),
  steps: ({ node, labels, taints, without }) => [
    nodeSettings(
      node,
      "label",
      Object.entries(labels).map(([key, value]) => `${key}=${value}`),
    ),
    nodeSettings(node, "taint", taints, without),
  ],
  // A node that joins anew has none of them.
  renewedBy: ({ node }) => `node ${node}`,
  verify: ({ node, network, patience }) => ({
    title: `${node} is ready`,
    // A node counts as ready as soon as its network is configured; that it works is told by the network's own pod.
    test: sh`conditions=$(${kubectl} --request-timeout 10s get node ${node} -o ${'jsonpath={range .status.conditions[*]}{.type}={.status} {.message}{"\\n"}{end}'}) || { echo "$conditions"; return 1; }
of() { printf '%s\n' "$conditions" | sed -n "s/^$1=//p"; }
case $(of Ready) in "True "*) ;; *) echo "not ready: $(of Ready)"; return 1 ;; esac
case ${network ? "wanted" : "any"}-$(of NetworkUnavailable) in any-* | "wanted-False "*) ;; *) echo ${`the pod network does not come up on it: look at its pod there (kubectl get pods -A --field-selector spec.nodeName=${node})`}; return 1 ;; esac`,
    seconds: patience,
  }),
});
