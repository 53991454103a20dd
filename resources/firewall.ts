import { z } from "zod";
import { component } from "../provider/component";
import { firewallOff, openings } from "../provider/steps";

export const Firewall = component({
  kind: "Firewall",
  about:
    "What firewalld, ufw or nftables let in, whichever runs; without one there is nothing to do. Other people's rules stay as they are.",
  args: z.object({
    mode: z
      .enum(["open", "disable"])
      .default("open")
      .describe(
        "open: let in what is listed; disable: switch firewalld and ufw off (nftables, which others share, is opened instead)",
      ),
    ports: z.array(z.string()).describe("Ports with their protocol: 6443/tcp, 30000-32767/udp"),
    networks: z
      .array(z.string())
      .default([])
      .describe("Networks whose packets come in and pass through, such as those of pods: 10.244.0.0/16"),
  }),
  steps: ({ mode, ports, networks }) => [mode === "disable" ? firewallOff() : [], openings([...ports, ...networks])],
});
