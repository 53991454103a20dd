import { z } from "zod";
import { component } from "../provider/component";
import { openFiles } from "../provider/steps";

/**
 * systemd before version 240 lets a service have 4096 files however much it asks for, which is too few for a registry, a
 * load balancer or etcd. Only the upper bound is raised: programs that count on 1024 keep it. Limits of logins
 * (/etc/security/limits.d) stay, as nothing of a cluster is started by logging in.
 */
export const Limits = component({
  kind: "Limits",
  about:
    "How many files a service may open if it asks for them. Nothing is changed where systemd allows as many already.",
  args: z.object({
    openFiles: z.number().int().min(1024).default(524288).describe("Upper bound that services have at least"),
  }),
  steps: (args) => [openFiles(args.openFiles)],
});
