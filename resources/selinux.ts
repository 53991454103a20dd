import { z } from "zod";
import { component } from "../provider/component";
import { selinux } from "../provider/steps";

export const SELinux = component({
  kind: "SELinux",
  about:
    "Mode of SELinux, now and after every boot. A host without it is left alone; one that has it switched off is permissive enough.",
  args: z.object({
    mode: z
      .enum(["permissive", "disabled", "enforcing"])
      .default("permissive")
      .describe("disabled: permissive until the next boot, then off"),
  }),
  steps: ({ mode }) => [selinux(mode)],
});
