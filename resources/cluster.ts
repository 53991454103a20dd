import * as pulumi from "@pulumi/pulumi";
import { Host, hostSpec, type HostArgs } from "../provider/host";
import type { DeepInput } from "../provider/inputs";
import { commaParts, parseSpec, type ClusterHost, type ClusterInput, type ClusterSpec } from "./config";
import { prepareHosts } from "./modules/host";
import { hostsEntries } from "./modules/names";
import { splitOutputs } from "./modules/outputs";

/** As in cluster.yaml; addresses, users and credentials of hosts may be Outputs of other resources. */
export type ClusterArgs = Omit<ClusterInput, "hosts"> & { hosts: DeepInput<ClusterInput["hosts"][number]>[] };

/** A whole cluster: machines in, Kubernetes out. */
export class Cluster extends pulumi.ComponentResource {
  constructor(name: string, args: ClusterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("kubexm:index:Cluster", name, {}, opts);
    const { spec, hosts, addresses } = read(name, args);
    const opened = { parent: this };

    const known = pulumi.output(addresses);
    const surroundings = {
      cluster: name,
      spec,
      names: known.apply((all) => hostsEntries(spec, all)),
      addresses: known.apply((all) => Object.values(all).flatMap(commaParts)),
      opts: opened,
    };
    prepareHosts(hosts, surroundings);

    this.registerOutputs({});
  }
}

/** The plain part is checked at once; what is known later joins it again afterwards. */
function read(name: string, { hosts, ...rest }: ClusterArgs) {
  const split = hosts.map((host) => splitOutputs(host as Readonly<Record<string, unknown>>));
  const spec: ClusterSpec = parseSpec(name, { ...rest, hosts: split.map(({ plain }) => plain) });
  const joined = spec.hosts.map((host, i) => ({ ...host, ...split[i]?.later }));
  return {
    spec,
    hosts: joined.map((host) => ({ host: reach(host), port: host.port, forget: host.forget })),
    addresses: Object.fromEntries(joined.map((host) => [host.name, host.internalAddress ?? host.address])),
  };
}

/** The part of a host that says how to get onto it. */
function reach(host: ClusterHost): Host {
  const { name, ...rest } = host;
  const spec = Object.fromEntries(Object.entries(rest).filter(([key]) => key in hostSpec.shape));
  return new Host(name, spec as HostArgs);
}
