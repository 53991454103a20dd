import { hostSpec } from "../../provider/ssh/spec";
import type { World } from "../../provider/lifecycle";
import type { ClusterHost, ClusterSpec } from "../config";
import { tryBackwards, withBackwards } from "./backwards";
import type { Row } from "./checks";
import { examine } from "./host";
import { askedOf, backwardsOf, ownAddress, placed, placeOf } from "./questions";
import { count, gravest, inOrder, type Counts } from "./table";
import { judgeTogether } from "./together";

export interface PreflightReport {
  readonly rows: readonly Row[];
  readonly counts: Counts;
}

const specOf = (host: ClusterHost) =>
  hostSpec.parse(Object.fromEntries(Object.entries(host).filter(([key]) => key in hostSpec.shape)));

/** All checks of a cluster without the engine and without a state: all hosts at once. */
export async function preflight(
  cluster: string,
  spec: ClusterSpec,
  { connect }: Pick<World, "connect">,
): Promise<PreflightReport> {
  const addresses = new Map(spec.hosts.map((host) => [host.name, ownAddress(host.internalAddress ?? host.address)]));
  const addressOf = (host: string) => addresses.get(host) ?? host;
  const { from, to } = backwardsOf(spec);
  const master = spec.hosts.find(({ name }) => name === from);
  const [examined, unreached] = await Promise.all([
    Promise.all(
      spec.hosts.map((host) => {
        const asked = { ...askedOf(spec, host.name, addressOf), place: placeOf(cluster, host.name) };
        return examine(host.name, asked, () => connect(specOf(host)));
      }),
    ),
    master === undefined ? [] : tryBackwards(() => connect(specOf(master)), placed(to, addressOf)),
  ]);
  const results = withBackwards(
    examined.map(({ result }) => result),
    from,
    unreached,
  );
  const rows = inOrder(gravest([...examined.flatMap((host) => host.rows), ...judgeTogether(results)]));
  const counts = {
    hosts: spec.hosts.length,
    pass: count(rows, "pass"),
    warn: count(rows, "warn"),
    fail: count(rows, "fail"),
  };
  return { rows, counts };
}
