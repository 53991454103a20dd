import * as pulumi from "@pulumi/pulumi";
import { Cluster, Kernel, Host } from "kubexm";

interface Machines {
  /** Where the machines are, by their names in the cluster. */
  [name: string]: string;
}

const config = new pulumi.Config();
const addresses = config.requireObject<Machines>("machines");
const access = {
  user: config.get("user") ?? "root",
  privateKeyPath: config.get("privateKeyPath") ?? "~/.ssh/id_ed25519",
  knownHostsPath: config.get("knownHostsPath") ?? "~/.ssh/known_hosts",
};

/** Stands for a virtual machine of any provider of Pulumi's: its address is known when it is made, and not in the first preview. */
class Machine extends pulumi.dynamic.Resource {
  declare readonly address: pulumi.Output<string>;
  constructor(name: string, at: string) {
    const create = ({ at }: { at: string }) => Promise.resolve({ id: name, outs: { at, address: at } });
    super({ create }, name, { at, address: undefined });
  }
}

const machines = Object.entries(addresses).map(([name, at]) => ({ name, machine: new Machine(`${name}-machine`, at) }));
const [first, ...rest] = machines.map(({ name }) => name);
if (first === undefined) throw new pulumi.RunError("machines names none");

const cluster = new Cluster("prod", {
  hosts: machines.map(({ name, machine }) => ({ name, address: machine.address, ...access })),
  roleGroups: { etcd: [first], master: [first], worker: rest.length > 0 ? rest : [first] },
  kubernetes: config.getObject("kubernetes") ?? { version: "v1.35.4" },
  network: { plugin: "flannel" },
});
export const kubeconfig = cluster.kubeconfig;

// Any component also works alone, on a host that is in no cluster.
const alone = config.get("alone");
if (alone !== undefined) {
  const box = new Host("box", { address: new Machine("box-machine", alone).address, ...access });
  new Kernel("box-kernel", { host: box, modules: ["br_netfilter"], sysctl: { "net.ipv4.ip_forward": 1 } });
}
