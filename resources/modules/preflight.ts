import * as pulumi from "@pulumi/pulumi";
import { askedOf, backwardsOf, ownAddress, placed, placeOf } from "../preflight/questions";
import { ClusterPreflight, Preflight } from "../preflight/components";
import { groupNames, makesKubernetes } from "../config";
import type { HostResult } from "../preflight/together";
import type { Machine, Surroundings } from "./host";

/** A component that only looks has what it saw as an output of its own; this makes Pulumi carry it. */
const result = { result: undefined };
const resultOf = (checked: pulumi.Resource) => (checked as unknown as { result: pulumi.Output<HostResult> }).result;

/** Checks every host, then all together. What waits for the one resource it gives, begins when all is found well. */
export function checkHosts(
  machines: readonly Machine[],
  { cluster, spec, addresses, opts }: Pick<Surroundings, "cluster" | "spec" | "addresses" | "opts">,
): pulumi.Resource[] {
  const known = pulumi.output(addresses);
  const addressOf = (host: string) => known.apply((all) => ownAddress(all[host] ?? host));
  const checked = machines.map(
    ({ host }) =>
      new Preflight(
        `${cluster}-${host.name}-preflight`,
        { host, ...askedOf(spec, host.name, addressOf), place: placeOf(cluster, host.name), ...result },
        opts,
      ),
  );
  const { from, to } = backwardsOf(spec);
  const master = machines.find(({ host }) => host.name === from);
  if (master === undefined) return checked;
  const all = new ClusterPreflight(
    `${cluster}-preflight`,
    {
      host: master.host,
      reach: placed(to, addressOf),
      masters: makesKubernetes(spec) ? groupNames(spec, "master") : [],
      results: checked.map(resultOf),
    },
    opts,
  );
  return [all];
}
