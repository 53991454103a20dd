import { z } from "zod";
import { component } from "../provider/component";
import { file, kernelHostname } from "../provider/steps";

export const Hostname = component({
  kind: "Hostname",
  about: "The host's name, now and after every boot. Its address belongs into the hosts file first.",
  args: z.object({ name: z.hostname().describe("The name, e.g. node1") }),
  steps: ({ name }) => [file("/etc/hostname", `${name}\n`), kernelHostname(name)],
});
