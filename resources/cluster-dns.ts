import { z } from "zod";
import { component } from "../provider/component";
import { spreadDns } from "./kubernetes/dns";

export const ClusterDns = component({
  kind: "ClusterDns",
  ofCluster: true,
  about: "The cluster's DNS on more than one node, so that names are found on when a host dies.",
  args: z.object({}),
  steps: () => [spreadDns],
});
