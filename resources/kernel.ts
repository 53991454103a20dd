import { z } from "zod";
import { component } from "../provider/component";
import { modules, sysctl } from "../provider/steps";

export const Kernel = component({
  kind: "Kernel",
  about: "Kernel modules and parameters, now and after every boot.",
  args: z.object({
    modules: z.array(z.string().min(1)).describe("Modules to load"),
    sysctl: z.record(z.string(), z.union([z.string(), z.number()])).describe("Parameters and their values"),
  }),
  steps: (args) => [
    modules("/etc/modules-load.d/kubexm.conf", args.modules),
    sysctl("/etc/sysctl.d/99-kubexm-cri.conf", args.sysctl),
  ],
});
