import { run } from "../toolchain/process.js";
import { noteLink } from "./daemon.js";
import { type Docker, docker, dockerLines, isRoot } from "./docker.js";
import { LINK_PREFIX, forwardingBack, rulesBack, tableName } from "./links.js";
import { UserError } from "../toolchain/errors.js";
import { createHash } from "node:crypto";

/** Service and pod addresses of kubeadm and of kubexm by default: packets to those that no host answers must not leave the machine. */
export const CLUSTER_RANGES = ["10.96.0.0/12", "10.244.0.0/16", "10.233.0.0/17"] as const;

interface Range {
  first: number;
  last: number;
}

/** `10.0.0.0/8`, or an address alone; undefined for what is neither (a default route, IPv6). */
export function parseRange(cidr: string): Range | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(cidr);
  if (!match) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, bits = 32] = match
    .slice(1)
    .flatMap((n: string | undefined) => (n ? [Number(n)] : []));
  const size = 2 ** (32 - bits);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

const overlap = (a: Range, b: Range) => a.first <= b.last && b.first <= a.last;

/** Private /24s, unusual ones first. */
const CANDIDATES = [
  ...Array.from({ length: 256 }, (_, i) => `172.30.${i}.0/24`),
  ...Array.from({ length: 256 }, (_, i) => `192.168.${255 - i}.0/24`),
  ...Array.from({ length: 256 }, (_, i) => `10.213.${i}.0/24`),
];

/** The first `count` subnets that nothing in `used` (routes, addresses, other networks) touches, nor the ranges of clusters. */
export function freeSubnets(
  used: readonly string[],
  count: number,
  ranges: readonly string[] = CLUSTER_RANGES,
): string[] {
  const taken = [...used, ...ranges].flatMap((cidr) => parseRange(cidr) ?? []);
  const free = CANDIDATES.filter((cidr) => {
    const range = parseRange(cidr);
    return range !== undefined && !taken.some((other) => overlap(range, other));
  }).slice(0, count);
  if (free.length < count) throw new UserError("no private /24 subnet is free on this machine: remove unused networks");
  return free;
}

/** The n-th address of a /24. */
export const addressIn = (subnet: string, n: number) => subnet.replace(/\d+\/24$/, String(n));

async function usedRanges(d: Docker): Promise<string[]> {
  const ids = await dockerLines(d, ["network", "ls", "-q"]);
  const [routes, networks, resolvers] = await Promise.all([
    run("ip", ["-4", "route", "show", "table", "all"]).then(({ stdout }) => stdout.split(/\s+/)),
    ids.length === 0
      ? []
      : // A network can go between the two calls: what the others say still counts.
        run("docker", ["network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}", ...ids], {
          env: d.env,
          okCodes: [0, 1],
        }).then(({ stdout }) => stdout.split(/\s+/)),
    run("cat", ["/etc/resolv.conf"], { okCodes: [0, 1] }).then(({ stdout }) => stdout.split(/\s+/)),
  ]);
  return [...routes, ...networks, ...resolvers];
}

export interface LabNetwork {
  /** The Docker network's name. */
  name: string;
  subnet: string;
  /** The bridge on this machine. */
  bridge: string;
  /** No way out, and not even this machine has an address in it. */
  closed: boolean;
}

const bridgeName = (network: string) => LINK_PREFIX + createHash("sha256").update(network).digest("hex").slice(0, 10);

/** Chooses subnets for a lab and claims them by making its networks. Call it under the lab lock. */
export async function createNetworks(
  d: Docker,
  wanted: readonly { name: string; closed: boolean }[],
  labels: readonly string[],
  ranges?: readonly string[],
): Promise<LabNetwork[]> {
  const subnets = freeSubnets(await usedRanges(d), wanted.length, ranges);
  const networks = wanted.map(({ name, closed }, i) => ({
    name,
    closed,
    bridge: bridgeName(name),
    subnet: subnets[i] ?? "",
  }));
  for (const { name, subnet, bridge, closed } of networks) {
    if (d.own) await noteLink(bridge);
    const closing = closed ? ["--internal", "-o", "com.docker.network.bridge.inhibit_ipv4=true"] : [];
    await docker(d, [
      ...["network", "create", "--subnet", subnet, "--gateway", addressIn(subnet, 1)],
      ...["-o", `com.docker.network.bridge.name=${bridge}`, ...closing],
      ...labels.flatMap((label) => ["--label", label]),
      name,
    ]);
  }
  return networks;
}

/**
 * Rules by incoming interface instead of routes: they hold for everything a lab sends and for nothing that the machine itself
 * does, so a private network of the machine's own may lie in the same range.
 */
function fence(network: LabNetwork, ranges: readonly string[]): string[] {
  const preference = 20_000;
  return ranges.flatMap((range) => [
    `ip rule add iif ${network.bridge} to ${range} unreachable preference ${preference}`,
    `ip rule add iif ${network.bridge} from ${range} unreachable preference ${preference}`,
  ]);
}

/** What Docker does for its networks, done here for our own: one table that goes as a whole. */
function nat(network: LabNetwork): string[] {
  const { bridge, subnet } = network;
  const table = `table ip ${tableName(bridge)} {
  chain nat {
    type nat hook postrouting priority srcnat;
    ip saddr ${subnet} oifname != "${bridge}" masquerade
  }
}`;
  return [`nft '${table}'`];
}

/** Another program's firewall may forward nothing by default; its chain is the only place where that can be answered. */
function forwarding({ bridge }: LabNetwork): string[] {
  const rules = [`-i ${bridge}`, `-o ${bridge}`].map((side) => `iptables -I FORWARD ${side} -j ACCEPT`);
  return [`if iptables-save -t filter 2>/dev/null | grep -q '^:FORWARD DROP'; then ${rules.join("; ")}; fi`];
}

/** On this machine: as root, or by a container that shares its network. */
async function onMachine(d: Docker, image: string, script: readonly string[]): Promise<void> {
  const text = script.join("\n");
  if (isRoot()) await run("sh", ["-c", text]);
  else await docker(d, ["run", "--rm", "--network=host", "--cap-add=NET_ADMIN", image, "sh", "-c", text]);
}

export async function openNetworks(
  d: Docker,
  image: string,
  networks: readonly LabNetwork[],
  ranges: readonly string[],
) {
  const open = networks.filter(({ closed }) => !closed);
  await onMachine(d, image, [
    "set -e",
    ...open.flatMap((network) => fence(network, ranges)),
    ...(d.own ? open.flatMap((network) => [...nat(network), ...forwarding(network)]) : []),
  ]);
}

/** Takes back what openNetworks did, however far it came. */
export async function closeNetworks(d: Docker, image: string, networks: readonly LabNetwork[]) {
  const open = networks.filter(({ closed }) => !closed);
  const script = open.flatMap(({ bridge }) => [...rulesBack(bridge), ...(d.own ? forwardingBack(bridge) : [])]);
  if (script.length > 0) await onMachine(d, image, script);
}
