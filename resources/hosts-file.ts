import { isIP } from "node:net";
import { z } from "zod";
import { component } from "../provider/component";
import { block } from "../provider/steps";

function isLine(text: string): boolean {
  const [address = "", ...names] = text.split(" ");
  return isIP(address) !== 0 && names.length > 0 && names.every((name) => z.regexes.hostname.test(name));
}

export const HostsFile = component({
  kind: "HostsFile",
  about: "Names of the cluster's hosts and services in /etc/hosts, as a block of its own among other people's lines.",
  args: z.object({
    // As text: every host has the lines of all, and Pulumi takes a structure apart at every step of every run.
    lines: z
      .array(z.string().refine(isLine, "must be an address and its names, as in `192.0.2.1 db1.example.org db1`"))
      .describe("Its lines: an address and the names it has, as in `192.0.2.1 db1.example.org db1`"),
  }),
  steps: ({ lines }) => [block("/etc/hosts", "KubeXM Managed Block", lines.map((line) => `${line}\n`).join(""))],
});
