import { z } from "zod";
import { component } from "../provider/component";
import { resolver } from "../provider/steps";

export const Resolver = component({
  kind: "Resolver",
  about:
    "More DNS servers, before those the host has: by systemd-resolved, NetworkManager, resolvconf or /etc/resolv.conf itself, whichever rules there.",
  args: z.object({
    servers: z
      .array(z.union([z.ipv4(), z.ipv6()]))
      .min(1)
      .describe("Addresses of DNS servers, first one first"),
  }),
  steps: ({ servers }) => [resolver(servers)],
});
