import { z } from "zod";
import { component } from "../provider/component";
import { block } from "../provider/steps";

export const HostsFile = component({
  kind: "HostsFile",
  about: "Names of the cluster's hosts and services in /etc/hosts, as a block of its own among other people's lines.",
  args: z.object({
    entries: z
      .array(z.object({ address: z.union([z.ipv4(), z.ipv6()]), names: z.array(z.hostname()).min(1) }).strict())
      .describe("One line for each address"),
  }),
  steps: ({ entries }) => [
    block(
      "/etc/hosts",
      "KubeXM Managed Block",
      entries.map(({ address, names }) => `${address} ${names.join(" ")}\n`).join(""),
    ),
  ],
});
