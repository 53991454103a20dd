import type { BastionSpec, HostSpec } from "./spec";
import { expandHome, expandPath, sshConfigFor, type SshConfigEntry } from "./ssh-config";

/** Where to dial and who to be there, after ~/.ssh/config had its say. */
export interface Target {
  /** How messages name it. */
  label: string;
  address: string;
  port: number;
  user: string;
  password?: string;
  sudoPassword?: string;
  privateKey?: string;
  privateKeyPath?: string;
  passphrase?: string;
  agent: boolean;
  identityFiles: readonly string[];
  hostKey?: string;
  hostKeyChecking: HostSpec["hostKeyChecking"];
  /** Files read for known keys; an accepted key is written to the first. */
  knownHosts: readonly string[];
  connectTimeoutMs: number;
  via?: Target;
}

type Endpoint = BastionSpec & { label: string; sudoPassword?: string | undefined };
type Lookup = (alias: string) => SshConfigEntry;

const DEFAULT_KEYS = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];
const MAX_JUMPS = 8;

const USER_KNOWN_HOSTS = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
/** Read whatever a user's config says: a company's authorities stand there, and what it has revoked. */
const SYSTEM_KNOWN_HOSTS = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

/** `user@host:port`, `host`, `[::1]:22` or an ssh:// URL, as of ProxyJump. */
export function parseJump(text: string): { address: string; user?: string; port?: number } {
  const plain = text.trim().replace(/^ssh:\/\//, "");
  const at = plain.lastIndexOf("@");
  const user = at > 0 ? plain.slice(0, at) : undefined;
  const found = /^(?:\[([^\]]+)\]|([^:]+|.*:.*:.*))(?::(\d+))?$/.exec(plain.slice(at + 1));
  const port = found?.[3];
  return {
    address: found?.[1] ?? found?.[2] ?? plain.slice(at + 1),
    ...(user !== undefined && { user }),
    ...(port !== undefined && { port: Number(port) }),
  };
}

function hop(spec: Endpoint, host: HostSpec, config: SshConfigEntry, via: Target | undefined): Target {
  const optional = {
    password: spec.password,
    sudoPassword: spec.sudoPassword ?? spec.password,
    privateKey: spec.privateKey,
    privateKeyPath: spec.privateKeyPath === undefined ? undefined : expandHome(spec.privateKeyPath),
    passphrase: spec.passphrase,
    hostKey: spec.hostKey,
    via,
  };
  const given = Object.entries(optional).filter(([, value]) => value !== undefined);
  const login = {
    address: config.hostName ?? spec.address,
    port: spec.port ?? config.port ?? 22,
    user: spec.user ?? config.user ?? "root",
  };
  const path = (text: string) => expandPath(text, { alias: spec.address, ...login });
  return {
    label: spec.label,
    ...login,
    agent: spec.agent,
    identityFiles: (config.identityFiles.length ? config.identityFiles : DEFAULT_KEYS).map(path),
    hostKeyChecking: host.hostKeyChecking,
    knownHosts: host.knownHostsPath
      ? [expandHome(host.knownHostsPath)]
      : [...(config.knownHosts ?? USER_KNOWN_HOSTS), ...SYSTEM_KNOWN_HOSTS].map(path),
    connectTimeoutMs: host.connectTimeout * 1000,
    ...(Object.fromEntries(given) as Partial<Target>),
  };
}

/** The bastions of ProxyJump, first hop first; the first hop may itself stand behind others. */
function jumps(config: SshConfigEntry, lookup: Lookup, depth: number): BastionSpec[] {
  const [first, ...rest] = (config.proxyJump ?? [])
    .filter(Boolean)
    .map((text) => ({ agent: true, ...parseJump(text) }));
  if (!first) return [];
  const before = depth < MAX_JUMPS ? jumps(lookup(first.address), lookup, depth + 1) : [];
  return [...before, first, ...rest];
}

/** The way to a host: explicit values win over ~/.ssh/config, which wins over the defaults. */
export function resolveTarget(spec: HostSpec, lookup: Lookup = sshConfigFor): Target {
  const config = lookup(spec.address);
  const bastions = spec.bastions.length ? spec.bastions : jumps(config, lookup, 0);
  const via = bastions.reduce<Target | undefined>(
    (outer, bastion) => hop({ ...bastion, label: `bastion ${bastion.address}` }, spec, lookup(bastion.address), outer),
    undefined,
  );
  return hop({ ...spec, label: spec.name }, spec, config, via);
}

/** Equal for everything that shares one connection. */
export function targetKey(target: Target): string {
  const own = `${target.user}@${target.address}:${target.port}`;
  return target.via ? `${targetKey(target.via)} > ${own}` : own;
}
