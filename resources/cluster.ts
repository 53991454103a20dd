import * as pulumi from "@pulumi/pulumi";
import { Host, hostSpec, type HostArgs } from "../provider/host";
import type { DeepInput } from "../provider/inputs";
import {
  hostsWithRoles,
  leftOut,
  makesKubernetes,
  parseSpec,
  refuseWhatIsNotBuilt,
  type ClusterHost,
  type ClusterInput,
  type ClusterSpec,
} from "./config";
import { equip } from "./modules/equipment";
import { archivesOf, filesOf } from "./modules/files";
import { prepareHosts, type PreparedMachine, type Surroundings } from "./modules/host";
import { makeKubernetes } from "./modules/kubernetes";
import { hostsLines } from "./modules/names";
import { splitOutputs } from "./modules/outputs";
import { checkHosts } from "./modules/preflight";
import { registriesOf } from "./modules/registries";

/** As in cluster.yaml; addresses, users and credentials of hosts may be Outputs of other resources. */
export type ClusterArgs = Omit<ClusterInput, "hosts"> & { hosts: DeepInput<ClusterInput["hosts"][number]>[] };

/** A whole cluster: machines in, Kubernetes out. */
export class Cluster extends pulumi.ComponentResource {
  /** The administrator's, as text; empty while there are only hosts made ready. */
  readonly kubeconfig: pulumi.Output<string>;

  constructor(name: string, args: ClusterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("kubexm:index:Cluster", name, {}, opts);
    const { spec, hosts, addresses } = read(name, args);
    faceWhatIsNotBuilt(spec);

    const known = pulumi.output(addresses);
    const surroundings = {
      cluster: name,
      spec,
      names: known.apply((all) => hostsLines(spec, all)),
      addresses: known,
      opts: { parent: this },
    };
    const dependsOn = checkHosts(hosts, surroundings);
    const prepared = prepareHosts(hosts, { ...surroundings, opts: { parent: this, dependsOn } });
    this.kubeconfig = pulumi.secret(makesKubernetes(spec) ? installKubernetes(prepared, surroundings) : "");
    this.registerOutputs({ kubeconfig: this.kubeconfig });
  }
}

/** A plan shows what there is; what is made is the whole, or nothing. */
function faceWhatIsNotBuilt(spec: ClusterSpec): void {
  if (!pulumi.runtime.isDryRun()) return refuseWhatIsNotBuilt(spec);
  const text = leftOut(spec);
  if (text !== undefined) void pulumi.log.warn(text);
}

function installKubernetes(prepared: readonly PreparedMachine[], surroundings: Surroundings): pulumi.Output<string> {
  const { spec } = surroundings;
  const settings = {
    ...surroundings,
    sources: filesOf(spec),
    registries: registriesOf(spec),
    archives: archivesOf(spec),
  };
  const equipped = prepared.map((machine) => equip(machine, settings));
  return makeKubernetes(equipped, settings);
}

/** The plain part is checked at once; what is known later joins it again afterwards. */
function read(name: string, { hosts, ...rest }: ClusterArgs) {
  const split = hosts.map((host) => splitOutputs(host as Readonly<Record<string, unknown>>));
  const spec: ClusterSpec = parseSpec(name, { ...rest, hosts: split.map(({ plain }) => plain) });
  const roles = new Map(hostsWithRoles(spec).map(({ host, roles }) => [host.name, roles]));
  const joined = spec.hosts.map((host, i) => ({ ...host, ...split[i]?.later }));
  return {
    spec,
    hosts: joined.map((host) => ({
      host: reach(host),
      address: host.address,
      port: host.port,
      roles: roles.get(host.name) ?? [],
      arch: host.arch,
      forget: host.forget,
    })),
    addresses: Object.fromEntries(joined.map((host) => [host.name, host.internalAddress ?? host.address])),
  };
}

/** The part of a host that says how to get onto it. */
function reach(host: ClusterHost): Host {
  const { name, ...rest } = host;
  const spec = Object.fromEntries(Object.entries(rest).filter(([key]) => key in hostSpec.shape));
  return new Host(name, spec as HostArgs);
}
