import { z } from "zod";
import { component } from "../provider/component";
import { render } from "../provider/steps";
import { manifest } from "./kubernetes/manifest";

const isV6 = (cidr: string) => cidr.includes(":");

export const Flannel = component({
  kind: "Flannel",
  ofCluster: true,
  about: "flannel as the cluster's pod network, applied from a master.",
  args: z.object({
    image: z.string().describe("Image of flanneld"),
    cniImage: z.string().describe("Image that puts the CNI plugin onto hosts"),
    podCIDR: z.array(z.string()).min(1).describe("Ranges of the pods, one per family"),
    backend: z.enum(["vxlan", "host-gw"]).default("vxlan").describe("How packets travel between nodes"),
  }),
  fixed: {
    backend:
      "flannel reads it when it starts, and nodes would speak two ways to each other; write backendMode back, or destroy the cluster and make it anew",
  },
  steps: ({ image, cniImage, podCIDR, backend }) => {
    const [v4, v6] = [podCIDR.find((cidr) => !isV6(cidr)), podCIDR.find(isV6)];
    const network = {
      EnableNFTables: false,
      ...(v4 === undefined ? { EnableIPv4: false } : { Network: v4 }),
      ...(v6 !== undefined && { EnableIPv6: true, IPv6Network: v6 }),
      Backend: { Type: backend },
    };
    return [manifest("flannel", render("flannel/flannel.yaml", { image, cniImage, network: JSON.stringify(network) }))];
  },
});
