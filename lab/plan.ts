import { randomBytes } from "node:crypto";
import { UserError } from "../toolchain/errors.js";
import type { HostOptions } from "./entry.js";
import type { ImageOptions } from "./image.js";
import { type LabNetwork, addressIn } from "./network.js";

export interface LabOptions extends HostOptions, ImageOptions {
  name?: string;
  /** The lab's files are in .kubexm/lab/NAME below this folder; default the current one. */
  cwd?: string;
  /** How many, or which: what a host says for itself goes before what the lab says for all. */
  hosts?: number | readonly (string | NamedHost)[];
  /** Names of counted hosts: node1, node2 … */
  prefix?: string;
  /** One more host to jump through; "only": there is no other way to the others, nor from them to anywhere. */
  bastion?: boolean | "only";
  secondInterface?: boolean;
  /** Service and pod ranges whose packets must not leave the machine. */
  ranges?: readonly string[];
  /** false: the lab ends with this process, by labDown or, if it was killed, by the next lab command. */
  keep?: boolean;
  signal?: AbortSignal;
}

export type NamedHost = HostOptions & { name: string };

export interface LabHost {
  name: string;
  address: string;
  port: number;
  user: string;
  privateKeyPath?: string;
  password?: string;
  sudoPassword?: string;
  /** On the second interface. */
  internalAddress?: string;
  /** Name of the host to jump through. */
  bastion?: string;
  container: string;
  /** Whether it runs in the lab's own Docker. */
  ownDocker: boolean;
}

export interface PlannedHost {
  host: LabHost;
  options: HostOptions;
  /** Networks in the order of its interfaces, with its address there. */
  networks: { name: string; address: string }[];
}

export const BASTION = "bastion";
const LABEL = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;
const MOST_HOSTS = 200;

/** What both hosts and lab may say. */
function hostOptions(from: HostOptions): HostOptions {
  const { user, login, sudo, memory, shell, sshd, tmpfs } = from;
  return {
    ...(user !== undefined && { user }),
    ...(login !== undefined && { login }),
    ...(sudo !== undefined && { sudo }),
    ...(memory !== undefined && { memory }),
    ...(shell !== undefined && { shell }),
    ...(sshd !== undefined && { sshd }),
    ...(tmpfs !== undefined && { tmpfs }),
  };
}

/** Each host's name and options, in order; a bastion is the last. */
export function planHosts(options: LabOptions): NamedHost[] {
  const { hosts = 1, prefix = "node", bastion = false } = options;
  const own: readonly (string | NamedHost)[] =
    typeof hosts === "number" ? Array.from({ length: hosts }, (_, i) => `${prefix}${i + 1}`) : hosts;
  const named = [...own, ...(bastion === false ? [] : [BASTION])].map((host) =>
    typeof host === "string" ? { name: host } : host,
  );
  if (own.length === 0 || named.length > MOST_HOSTS)
    throw new UserError(`a lab has 1 to ${MOST_HOSTS} hosts, not ${own.length}`);
  const names = named.map(({ name }) => name);
  const bad = names.find((name, i) => !LABEL.test(name) || names.indexOf(name) !== i);
  if (bad !== undefined)
    throw new UserError(`lab host "${bad}": a name is lower-case letters, digits and dashes, and stands once`);
  return named.map((host) => ({ ...hostOptions(options), ...hostOptions(host), name: host.name }));
}

export function checkLabName(name: string): string {
  if (LABEL.test(name)) return name;
  throw new UserError(`lab name "${name}": use up to 32 lower-case letters, digits and dashes`);
}

/** Names are the machine's: two suites, or two files of one, must not meet in them. */
export const anyLabName = () => `t${randomBytes(4).toString("hex")}`;

export const objectName = (...parts: readonly string[]) => ["kubexm-lab", ...parts].join("-");

/** The networks that a lab needs; the first is the one that hosts are reached in. */
export function planNetworks({ bastion = false, secondInterface = false }: LabOptions, name: string) {
  return [
    { name: objectName(name), closed: bastion === "only" },
    ...(secondInterface ? [{ name: objectName(name, "2"), closed: true }] : []),
    ...(bastion === "only" ? [{ name: objectName(name, "out"), closed: false }] : []),
  ];
}

const password = () => randomBytes(12).toString("base64url");

/** The first address that a host gets; the one before is the machine's own. */
const FIRST = 11;

export function planLab(
  { bastion = false, secondInterface = false, ...options }: LabOptions,
  place: { name: string; privateKeyPath: string; ownDocker: boolean },
  networks: readonly LabNetwork[],
): PlannedHost[] {
  const [main, ...others] = networks;
  if (!main) throw new Error("a lab without a network");
  const second = secondInterface ? others[0] : undefined;
  const outer = bastion === "only" ? others.at(-1) : undefined;
  return planHosts({ ...options, bastion, secondInterface }).map(({ name, ...own }, i) => {
    const isBastion = bastion !== false && name === BASTION;
    const { user = "root", login = "key", sudo = "free" } = own;
    const secret = login === "password" || (user !== "root" && sudo === "password") ? password() : undefined;
    const at = ({ name: network, subnet }: LabNetwork) => ({ name: network, address: addressIn(subnet, FIRST + i) });
    const first = isBastion && outer ? [at(outer)] : [];
    const interfaces = [...first, at(main), ...(second ? [at(second)] : [])];
    const host: LabHost = {
      name,
      address: interfaces[0]?.address ?? "",
      port: 22,
      user,
      ...(login === "key" && { privateKeyPath: place.privateKeyPath }),
      ...(login === "password" && secret !== undefined && { password: secret }),
      ...(user !== "root" && sudo === "password" && secret !== undefined && { sudoPassword: secret }),
      ...(second && { internalAddress: at(second).address }),
      ...(bastion !== false && !isBastion && { bastion: BASTION }),
      container: objectName(place.name, name),
      ownDocker: place.ownDocker,
    };
    return { host, options: own, networks: interfaces };
  });
}
