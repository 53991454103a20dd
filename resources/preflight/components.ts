import { z } from "zod";
import { component } from "../../provider/component";
import { asked } from "./asked";

/** Both only look: they have no steps, and what they do in place of a change is in provider.ts. */
export const Preflight = component({
  kind: "Preflight",
  about: "Whether a host can become what it is to be; looked at once, before anything is changed.",
  args: asked,
  steps: () => [],
});

/** A cluster lives on in its masters: with all of them others, a second one would begin and take the first one's workers. */
const changesHands = (was: unknown, is: unknown) =>
  Array.isArray(was) && Array.isArray(is) && was.length > 0 && !was.some((name) => is.includes(name));

export const ClusterPreflight = component({
  kind: "ClusterPreflight",
  about: "Whether all hosts are as they must be, by themselves and beside each other; everything else waits for it.",
  args: z.object({
    reach: asked.shape.reach,
    masters: z
      .array(z.string())
      .default([])
      .describe("Nodes with a control plane; some of them stay with every change"),
    results: z.array(z.unknown()).describe("What was seen of each host"),
  }),
  fixed: {
    masters: {
      where: changesHands,
      reason:
        "none of the masters would stay; add the new ones first, run up, and take the old ones out then (Kubernetes goes off the hosts with destroy)",
    },
  },
  steps: () => [],
});
