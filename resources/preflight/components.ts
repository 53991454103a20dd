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

export const ClusterPreflight = component({
  kind: "ClusterPreflight",
  about: "Whether all hosts are as they must be, by themselves and beside each other; everything else waits for it.",
  args: z.object({
    reach: asked.shape.reach,
    results: z.array(z.unknown()).describe("What was seen of each host"),
  }),
  steps: () => [],
});
