import { addressesOf, hostsOf, hostsRecords, type ClusterHost, type ClusterSpec, type HostsRecord } from "../config";

/** Every address of a host as its own line of a hosts file. */
const linesFor = (
  host: Pick<ClusterHost, "address" | "internalAddress"> | undefined,
  names: string[],
): HostsRecord[] =>
  host === undefined ? [] : Object.values(addressesOf(host)).map((address: string) => ({ address, names }));

/** Lines of a hosts file with all names that every host has to know, once the addresses are known. */
export function hostsLines(spec: ClusterSpec, addresses: Readonly<Record<string, string>>): string[] {
  const at = (host: ClusterHost | undefined) => host && { address: addresses[host.name] ?? host.address };
  const { domain, lb_address: balancer, externalDNS } = spec.controlPlaneEndpoint;
  const endpoint = balancer === "" ? at(hostsOf(spec, "master")[0]) : { address: balancer };
  const registry = spec.registry.privateRegistry.replace(/:\d+$/, "");
  const records = [
    ...spec.hosts.flatMap((host) => linesFor(at(host), [`${host.name}.${spec.kubernetes.clusterName}`, host.name])),
    // A line here would go before what the user's own DNS says.
    ...(externalDNS ? [] : linesFor(endpoint, [domain])),
    ...(registry === "" ? [] : linesFor(at(hostsOf(spec, "registry")[0]), [registry])),
    ...spec.extra.hosts.map((entry) => ({ address: entry.address, names: [entry.domain] })),
    ...hostsRecords(spec.host),
  ];
  return records.map(({ address, names }) => `${address} ${names.join(" ")}`);
}
