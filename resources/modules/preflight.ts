import * as pulumi from "@pulumi/pulumi";
import { backwardsOf, ownAddress, questionsFor, reachOf } from "../preflight/questions";
import type { Reach } from "../preflight/asked";
import { ClusterPreflight, Preflight } from "../preflight/components";
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
  const at = (reach: readonly Omit<Reach, "address">[]) =>
    reach.map((row) => ({ ...row, address: known.apply((all) => ownAddress(all[row.host] ?? row.host)) }));
  const checked = machines.map(({ host }) => {
    const questions = questionsFor(spec, host.name);
    const reach = [...questions.reach, ...at(reachOf(spec, host.name))];
    return new Preflight(`${cluster}-${host.name}-preflight`, { host, ...questions, reach, ...result }, opts);
  });
  const { from, to } = backwardsOf(spec);
  const master = machines.find(({ host }) => host.name === from);
  if (master === undefined) return checked;
  const all = new ClusterPreflight(
    `${cluster}-preflight`,
    { host: master.host, reach: at(to), results: checked.map(resultOf) },
    opts,
  );
  return [all];
}
