import { addressesOf, groupNames } from "./hosts";
import { BITS, cidrText, commaParts, contains, network, overlaps, parseCidr, parseIp, type Cidr } from "./ip";
import type { Path } from "./problems";
import type { Finding, Rule } from "./rule";
import type { ClusterSpec } from "./schema";

const PODS: Path = ["network", "kubePodsCIDR"];
const SERVICES: Path = ["network", "kubeServiceCIDR"];
const HOSTS: Path = ["hosts", "*"];

const rangesOf = (text: string): Cidr[] => commaParts(text).flatMap((part) => parseCidr(part) ?? []);
const podsOf = ({ network: { kubePodsCIDR } }: ClusterSpec) => rangesOf(kubePodsCIDR);
const servicesOf = ({ network: { kubeServiceCIDR } }: ClusterSpec) => rangesOf(kubeServiceCIDR);

const both = (spec: ClusterSpec) => [
  { path: PODS, name: "pods", ranges: podsOf(spec) },
  { path: SERVICES, name: "services", ranges: servicesOf(spec) },
];

function hostBits(spec: ClusterSpec): Finding[] {
  return both(spec).flatMap(({ path, ranges }) =>
    ranges
      .filter((range) => network(range).value !== range.value)
      .map((range) => ({
        path,
        message: `${cidrText(range)} does not begin where its range begins; write ${cidrText(network(range))}`,
      })),
  );
}

function overlap(spec: ClusterSpec): Finding[] {
  return servicesOf(spec).flatMap((service) =>
    podsOf(spec)
      .filter((pod) => overlaps(pod, service))
      .map((pod) => ({
        path: SERVICES,
        because: [PODS],
        message: `overlaps the pods' ${cidrText(pod)}; write a range that has nothing in common with it`,
      })),
  );
}

/** An address of a host within the pods' or services' range could never be reached. */
function hostsInRanges(spec: ClusterSpec): Finding[] {
  const { lb_address } = spec.controlPlaneEndpoint;
  const places = [
    ...spec.hosts.map((host, i) => ({
      path: ["hosts", i, host.internalAddress === undefined ? "address" : "internalAddress"] as Path,
      ips: Object.values(addressesOf(host)) as string[],
    })),
    { path: ["controlPlaneEndpoint", "lb_address"] as Path, ips: [lb_address] },
  ];
  const ranges = both(spec).flatMap(({ path, name, ranges }) => ranges.map((range) => ({ path, name, range })));
  return places.flatMap(({ path, ips }) =>
    ips
      .flatMap((text) => parseIp(text) ?? [])
      .flatMap((ip) =>
        ranges
          .filter(({ range }) => contains(range, ip))
          .map(({ path: at, name, range }) => ({
            path,
            because: [at],
            message: `lies within the range of the ${name}, ${cidrText(range)}; write another address, or another ${String(at[1])}`,
          })),
      ),
  );
}

const familiesOf = (ranges: readonly Cidr[]) => ranges.map(({ family }) => family).sort((a, b) => a - b);
const familyText = (families: readonly number[]) => families.map((family) => `IPv${family}`).join(" and ");

function families(spec: ClusterSpec): Finding[] {
  const [pods, services] = [familiesOf(podsOf(spec)), familiesOf(servicesOf(spec))];
  if (pods.join() === services.join()) return [];
  const message = `is ${familyText(services)}, the pods have ${familyText(pods)}; write ranges of the same families`;
  return [{ path: SERVICES, because: [PODS], message }];
}

/** Only a node of known addresses is judged: of one named by DNS the host itself tells later. */
function hostFamilies(spec: ClusterSpec): Finding[] {
  const wanted = familiesOf(podsOf(spec));
  return spec.hosts.flatMap((host, i) => {
    const known = addressesOf(host);
    const missing = wanted.filter((family) => known[`v${family}`] === undefined);
    if (Object.keys(known).length === 0 || missing.length === 0) return [];
    const path: Path = ["hosts", i, host.internalAddress === undefined ? "address" : "internalAddress"];
    const message = `has no ${familyText(missing)} address, but the pods do; write internalAddress: "IPv4,IPv6", or pod and service ranges of one family`;
    return [{ path, because: [PODS], message }];
  });
}

/** flanneld is told the node's first address, and with both families it finds an interface by an IPv4 one only. */
function firstFamily(spec: ClusterSpec): Finding[] {
  if (spec.network.plugin !== "flannel" || podsOf(spec).length < 2) return [];
  return spec.hosts.flatMap(({ internalAddress = "" }, i) => {
    const [first, second] = commaParts(internalAddress).map(parseIp);
    if (first?.family !== 6 || second === undefined) return [];
    const message = "begins with the IPv6 address, and flannel needs the other one first; write IPv4,IPv6";
    return [{ path: ["hosts", i, "internalAddress"], message }];
  });
}

/** The API server wants services to begin with the family of the address it stands at, which is the master's first. */
function servedFamily(spec: ClusterSpec): Finding[] {
  const [services] = servicesOf(spec);
  const masters = new Set(groupNames(spec, "master"));
  return spec.hosts.flatMap(({ name, address, internalAddress }, i) => {
    const [first] = commaParts(internalAddress ?? address).map(parseIp);
    // Where pods have both, an IPv6 address may not be the first anyway.
    const judged = first?.family === 4 || podsOf(spec).length < 2;
    if (!masters.has(name) || !first || !services || !judged || first.family === services.family) return [];
    const path: Path = ["hosts", i, internalAddress === undefined ? "address" : "internalAddress"];
    const message = `begins with IPv${first.family}, and kubeServiceCIDR with IPv${services.family}; write the same family first in both`;
    return [{ path, because: [SERVICES], message }];
  });
}

/** The API server takes 20 bits at most; kubeadm gives the tenth address to DNS. */
const SERVICE_BITS = { least: 4, most: 20 };

function serviceSize(spec: ClusterSpec): Finding[] {
  return servicesOf(spec).flatMap((range) => {
    const bits = BITS[range.family] - range.prefix;
    const say = (what: string, prefix: number) => [
      { path: SERVICES, message: `${cidrText(range)} is too ${what}; write a prefix of /${prefix}` },
    ];
    if (bits > SERVICE_BITS.most) return say("large for services", BITS[range.family] - SERVICE_BITS.most);
    if (bits < SERVICE_BITS.least) return say("small for services", BITS[range.family] - SERVICE_BITS.least);
    return [];
  });
}

/** The controller manager refuses more than 2^16 shares. */
const SHARE_BITS = 16;

function nodeShares(spec: ClusterSpec): Finding[] {
  const { maxPods, nodeCidrMaskSize, nodeCidrMaskSizeIPv6 } = spec.kubernetes;
  const nodes = new Set([...groupNames(spec, "master"), ...groupNames(spec, "worker")]).size;
  return podsOf(spec).flatMap((range) => {
    const [key, mask] =
      range.family === 4
        ? (["nodeCidrMaskSize", nodeCidrMaskSize] as const)
        : (["nodeCidrMaskSizeIPv6", nodeCidrMaskSizeIPv6] as const);
    const path: Path = ["kubernetes", key];
    const because = [PODS];
    if (mask < range.prefix)
      return [
        {
          path,
          because,
          message: `a node's share of /${mask} is larger than all of ${cidrText(range)}; write ${Math.min(range.prefix + 8, BITS[range.family])}, or a larger kubePodsCIDR`,
        },
      ];
    if (mask - range.prefix > SHARE_BITS)
      return [
        {
          path,
          because,
          message: `/${mask} cuts ${cidrText(range)} into more than ${2 ** SHARE_BITS} shares; write ${range.prefix + SHARE_BITS} or less`,
        },
      ];
    const shares = 2 ** (mask - range.prefix);
    const addresses = 2 ** (BITS[range.family] - mask) - 2;
    return [
      ...(nodes > shares
        ? [
            {
              path: PODS,
              because: [path, HOSTS],
              message: `${cidrText(range)} has room for ${shares} nodes, there are ${nodes}; write a larger range, or a ${key} above ${mask}`,
            },
          ]
        : []),
      ...(addresses < maxPods
        ? [
            {
              path: ["kubernetes", "maxPods"],
              because: [path],
              message: `a node has ${Math.max(addresses, 0)} addresses for pods by ${key} ${mask}, maxPods is ${maxPods}; write at most ${Math.max(addresses, 1)}, or a smaller ${key}`,
            },
          ]
        : []),
    ];
  });
}

function calico(spec: ClusterSpec): Finding[] {
  const { plugin, calico, ippool } = spec.network;
  if (plugin !== "calico") return [];
  const pool = podsOf(spec).find(({ family }) => family === 4);
  const path: Path = ["network", "calico", "vxlanMode"];
  return [
    ...(calico.ipipMode !== "Never" && calico.vxlanMode !== "Never"
      ? [
          {
            path,
            because: [["network", "calico", "ipipMode"]],
            message: `ipipMode is ${calico.ipipMode}, and only one of them can be used; write Never for one`,
          },
        ]
      : []),
    ...(pool !== undefined && ippool.blockSize < pool.prefix
      ? [
          {
            path: ["network", "ippool", "blockSize"],
            because: [PODS],
            message: `a block of /${ippool.blockSize} is larger than all of ${cidrText(pool)}; write ${Math.min(pool.prefix + 8, 32)}`,
          },
        ]
      : []),
  ];
}

export const NETWORK_RULES: readonly Rule[] = [
  { name: "cidr-start", severity: "error", check: hostBits },
  { name: "cidr-overlap", severity: "error", check: overlap },
  { name: "host-in-cidr", severity: "error", check: hostsInRanges },
  { name: "cidr-families", severity: "error", check: families },
  { name: "host-families", severity: "error", check: hostFamilies },
  { name: "first-family", severity: "error", check: firstFamily },
  { name: "served-family", severity: "error", check: servedFamily },
  { name: "service-cidr-size", severity: "error", check: serviceSize },
  { name: "node-cidr", severity: "error", check: nodeShares },
  { name: "calico", severity: "error", check: calico },
];
