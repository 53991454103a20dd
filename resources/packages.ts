import { z } from "zod";
import { component } from "../provider/component";
import { packages } from "../provider/steps";

export const Packages = component({
  kind: "Packages",
  about: "Packages a host needs, by its own package manager. On destroy only those go that were not there before.",
  args: z.object({
    debs: z.array(z.string().min(1)).default([]).describe("Names on Debian and its relatives"),
    rpms: z.array(z.string().min(1)).default([]).describe("Names on RHEL and its relatives"),
  }),
  steps: ({ debs, rpms }, { os }) => [packages(os.packageManager === "apt" ? debs : rpms)],
});
