import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { nodeSettings } from "./kubernetes/node-settings";
import { kubectl } from "./kubernetes/paths";

export const NodeSettings = component({
  kind: "NodeSettings",
  ofCluster: true,
  about: "Labels and taints of a node, set on a master; waits until the node is ready.",
  args: z.object({
    node: z.string().describe("Name of the node"),
    labels: z.record(z.string(), z.string()).default({}).describe("Labels"),
    taints: z.array(z.string()).default([]).describe("Taints, as `key=value:Effect`"),
    patience: z.number().int().default(180).describe("Seconds until the node must be ready"),
  }),
  steps: ({ node, labels, taints }) => [
    nodeSettings(
      node,
      "label",
      Object.entries(labels).map(([key, value]) => `${key}=${value}`),
    ),
    nodeSettings(node, "taint", taints),
  ],
  verify: ({ node, patience }) => ({
    title: `${node} is ready`,
    test: sh`why=$(${kubectl} --request-timeout 10s get node ${node} -o ${'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'}) || { echo "$why"; return 1; }
case $why in "True "*) ;; *) echo "not ready: $why"; return 1 ;; esac`,
    seconds: patience,
  }),
});
