import { commaParts, ipText, parseIp } from "./ip";
import type { ClusterHost, ClusterSpec } from "./schema";
import { ROLES, type Role } from "./schema-hosts";

/** More than any cluster has; a slip of the finger must not fill the memory. */
const MOST_NAMES = 20_000;
const RANGE = /^([^[\]]*)\[(\d{1,9}):(\d{1,9})\]([^[\]]*)$/;

/** What is wrong with an entry of a role group, if anything. */
export function rangeFault(text: string): string | undefined {
  if (!/[[\]]/.test(text)) return undefined;
  const [, , from = "", to = ""] = RANGE.exec(text) ?? [];
  if (from === "") return "is not a range of hosts; write for example node[1:3]";
  if (Number(from) > Number(to)) return `counts down; write [${to}:${from}]`;
  if (Number(to) - Number(from) >= MOST_NAMES) return `names more than ${MOST_NAMES} hosts; write a smaller range`;
  return undefined;
}

/** `node[8:10]` → node8, node9, node10; `node[08:10]` keeps the zero. A name without a range stands for itself. */
export function expandRange(text: string): string[] {
  const [, head = "", from = "", to = "", tail = ""] = RANGE.exec(text) ?? [];
  if (from === "" || rangeFault(text) !== undefined) return [text];
  const width = from.startsWith("0") ? from.length : 0;
  return Array.from(
    { length: Number(to) - Number(from) + 1 },
    (_, i) => `${head}${String(Number(from) + i).padStart(width, "0")}${tail}`,
  );
}

type Groups = Pick<ClusterSpec, "roleGroups">;

/** The names in a role group, ranges expanded, each once. */
export const groupNames = ({ roleGroups }: Groups, role: Role): string[] => [
  ...new Set(roleGroups[role].flatMap(expandRange)),
];

export interface HostRoles {
  host: ClusterHost;
  roles: Role[];
}

/** kubeadm gives every master a member of etcd, whether the file says so or leaves its group out. */
const groupOf = (role: Role, { etcd }: Pick<ClusterSpec, "etcd">): Role =>
  role === "etcd" && etcd.type === "kubeadm" ? "master" : role;

/** Every host with its roles, in the order of the file. */
export function hostsWithRoles(spec: Pick<ClusterSpec, "hosts" | "roleGroups" | "etcd">): HostRoles[] {
  const groups = ROLES.map((role) => ({ role, names: new Set(groupNames(spec, groupOf(role, spec))) }));
  return spec.hosts.map((host) => ({
    host,
    roles: groups.filter(({ names }) => names.has(host.name)).map(({ role }) => role),
  }));
}

/** The hosts of a role, in the order of the role group: the first master is the one that starts the cluster. */
export function hostsOf(spec: Pick<ClusterSpec, "hosts" | "roleGroups">, role: Role): ClusterHost[] {
  const byName = new Map(spec.hosts.map((host) => [host.name, host]));
  return groupNames(spec, role).flatMap((name) => byName.get(name) ?? []);
}

export interface Addresses {
  v4?: string;
  v6?: string;
}

/** The host's addresses within the cluster. A name in `address` gives none: only the host can tell then. */
export function addressesOf({ address, internalAddress }: Pick<ClusterHost, "address" | "internalAddress">): Addresses {
  const known = commaParts(internalAddress ?? address).flatMap((part) => parseIp(part) ?? []);
  return Object.fromEntries(known.map((ip) => [`v${ip.family}`, ipText(ip)]));
}

export interface HostsRecord {
  address: string;
  names: string[];
}

/** The records of `spec.host`. YAML joins the lines of an unquoted value, so a record ends where the next address stands. */
export function hostsRecords(text: string): HostsRecord[] {
  const words = text
    .split("\n")
    .flatMap((line) => line.replace(/#.*/, "").split(/\s+/))
    .filter((word) => word !== "");
  return words.reduce<HostsRecord[]>((records, word) => {
    const last = records.at(-1);
    if (last === undefined || parseIp(word) !== undefined) records.push({ address: word, names: [] });
    else last.names.push(word);
    return records;
  }, []);
}
