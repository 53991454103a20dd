import { z } from "zod";
import { component } from "../provider/component";
import { swapOff } from "../provider/steps";

export const Swap = component({
  kind: "Swap",
  about:
    "No swap, as kubelet wants it: lines of fstab become comments, swap units and zram are switched off. Destroy turns it on again.",
  args: z.object({}),
  steps: () => [swapOff()],
});
