import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { stringify } from "yaml";
import { labKubernetes } from "./kubernetes.js";
import { codeOf } from "../toolchain/errors.js";
import type { LabHost } from "./plan.js";

/** A lab that is up, as its file lab.json says. */
export interface Lab {
  name: string;
  dir: string;
  hosts: LabHost[];
  /** The host to jump through; it is not one of `hosts`. */
  bastion?: LabHost;
  privateKeyPath: string;
  knownHostsPath: string;
  /** Path of a cluster.yaml that names all hosts. */
  clusterYaml: string;
  /** Path of a configuration for `ssh -F`. */
  sshConfig: string;
}

export interface LabRecord {
  state: "starting" | "up";
  keep: boolean;
  /** What it was asked for: an equal `up` finds it and uses it again. */
  asked: string;
  lab: Lab;
}

export const labDir = (name: string, cwd = process.cwd()) => join(resolve(cwd), ".kubexm", "lab", name);

export function labFiles(name: string, dir: string): Omit<Lab, "hosts" | "bastion"> {
  return {
    name,
    dir,
    privateKeyPath: join(dir, "id_ed25519"),
    knownHostsPath: join(dir, "known_hosts"),
    clusterYaml: join(dir, "cluster.yaml"),
    sshConfig: join(dir, "ssh_config"),
  };
}

/** Not there is one thing; there, but not to be read, is another: then it is somebody else's. */
export async function readRecord(dir: string): Promise<LabRecord | undefined> {
  const text = await readFile(join(dir, "lab.json"), "utf8").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? undefined : (JSON.parse(text) as LabRecord);
}

/** What is said in cluster.yaml to log in somewhere. */
const access = ({ address, user, privateKeyPath, password }: LabHost) => ({ address, user, privateKeyPath, password });

/** The cluster.yaml of a lab; `extra` lays more over its spec. */
export function labClusterYaml(lab: Lab, extra: Readonly<Record<string, unknown>> = {}): string {
  const [first, ...rest] = lab.hosts.map(({ name }) => name);
  const { bastion } = lab;
  const spec = {
    hosts: lab.hosts.map((host) => ({
      name: host.name,
      ...access(host),
      sudoPassword: host.sudoPassword,
      internalAddress: host.internalAddress,
      bastions: host.bastion !== undefined && bastion ? [access(bastion)] : undefined,
    })),
    roleGroups: { etcd: [first], master: [first], worker: rest.length > 0 ? rest : [first] },
    ssh: { knownHostsPath: lab.knownHostsPath },
    kubernetes: labKubernetes(),
    // All hosts share one disk with whatever else the machine is doing.
    ignorePreflight: ["etcd-disk"],
    ...extra,
  };
  const cluster = {
    apiVersion: "kubexm.mensylisir.io/v1alpha1",
    kind: "Cluster",
    metadata: { name: lab.name },
    spec,
  };
  return stringify(cluster, { aliasDuplicateObjects: false });
}

export function sshConfig(lab: Lab): string {
  const host = ({ name, address, port, user, privateKeyPath, bastion }: LabHost) =>
    [
      `Host ${name}`,
      `  HostName ${address}`,
      `  Port ${port}`,
      `  User ${user}`,
      ...(privateKeyPath === undefined ? ["  PubkeyAuthentication no"] : [`  IdentityFile "${privateKeyPath}"`]),
      ...(bastion === undefined ? [] : [`  ProxyJump ${bastion}`]),
    ].join("\n");
  const all = [
    "Host *",
    "  IdentitiesOnly yes",
    `  UserKnownHostsFile "${lab.knownHostsPath}"`,
    "  StrictHostKeyChecking yes",
  ];
  return [...lab.hosts, ...(lab.bastion ? [lab.bastion] : [])].map(host).join("\n") + `\n${all.join("\n")}\n`;
}

/** Name servers of this machine that a host on another network can ask too. */
export function nameServersOf(...resolvConfs: readonly string[]): string[] {
  return (
    resolvConfs
      .map((text) => [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? ""))
      .map((servers) => servers.filter((address) => isIP(address) === 4 && !address.startsWith("127.")))
      .find((servers) => servers.length > 0) ?? []
  );
}
