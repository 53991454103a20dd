import { z } from "zod";
import {
  addressesOf,
  expandRange,
  groupNames,
  hostsRecords,
  hostsWithRoles,
  rangeFault,
  type HostsRecord,
} from "./hosts";
import { ipText, parseIp } from "./ip";
import type { Path } from "./problems";
import type { Finding, Rule } from "./rule";
import type { ClusterHost, ClusterSpec } from "./schema";
import { ROLES, type Role } from "./schema-hosts";
import { closest } from "./words";

const MOST_NAMED = 5;
const NAMES: Path[] = [["hosts", "*", "name"]];
const groupPath = (role: Role): Path => ["roleGroups", role];

const named = (names: readonly string[]) =>
  names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "");

/** Each entry of each role group. */
const entries = ({ roleGroups }: ClusterSpec) =>
  ROLES.flatMap((role) => roleGroups[role].map((text, i) => ({ text, path: [...groupPath(role), i] })));

function ranges(spec: ClusterSpec): Finding[] {
  return entries(spec).flatMap(({ text, path }) => {
    const message = rangeFault(text);
    return message === undefined ? [] : [{ path, message }];
  });
}

function unknownHosts(spec: ClusterSpec): Finding[] {
  const all = spec.hosts.map(({ name }) => name);
  const known = new Set(all);
  return entries(spec)
    .filter(({ text }) => rangeFault(text) === undefined)
    .flatMap(({ text, path }) => {
      const missing = expandRange(text).filter((name) => !known.has(name));
      if (missing.length === 0) return [];
      const meant = missing.length === 1 && missing[0] === text ? closest(text, all) : undefined;
      const advice =
        meant === undefined ? "write a name that stands there, or add the host" : `write ${meant}, or add the host`;
      return [
        {
          path,
          because: NAMES,
          message: `${named(missing)} ${missing.length === 1 ? "is" : "are"} not among hosts; ${advice}`,
        },
      ];
    });
}

function listedTwice(spec: ClusterSpec): Finding[] {
  return ROLES.flatMap((role) => {
    const seen = new Set<string>();
    return spec.roleGroups[role].flatMap((text, i) => {
      const names = expandRange(text);
      const again = names.filter((name) => seen.has(name));
      for (const name of names) seen.add(name);
      const message = `${named(again)} stands in this group already; write each host once`;
      return again.length === 0 ? [] : [{ path: [...groupPath(role), i], message }];
    });
  });
}

/** Values that stand at two hosts: each but the first is told of. */
function twice(
  spec: ClusterSpec,
  values: (host: ClusterHost) => { key: string; path: Path; what: string }[],
): Finding[] {
  const first = new Map<string, string>();
  return spec.hosts.flatMap((host, i) =>
    values(host).flatMap(({ key, path, what }) => {
      const owner = first.get(key);
      if (owner === undefined) first.set(key, host.name);
      const whose = owner === host.name ? "another host" : owner;
      const message = `${what} belongs to ${whose ?? ""} already; write another one`;
      return owner === undefined ? [] : [{ path: ["hosts", i, ...path], message }];
    }),
  );
}

const namesTwice = (spec: ClusterSpec) =>
  twice(spec, ({ name }) => [{ key: name, path: ["name"], what: `the name ${name}` }]);

const normal = (text: string) => {
  const ip = parseIp(text);
  return ip === undefined ? text : ipText(ip);
};

/** The same address behind another bastion, or with another port, is another machine. */
function addressesTwice(spec: ClusterSpec): Finding[] {
  return twice(spec, ({ address, port, bastions }) => {
    const at = `${normal(address)} port ${port ?? 22}`;
    return [{ key: JSON.stringify([at, bastions]), path: ["address"], what: at }];
  });
}

function internalTwice(spec: ClusterSpec): Finding[] {
  const reported = new Set(addressesTwice(spec).map(({ path }) => path[1]));
  return twice(spec, (host) => {
    const path = [host.internalAddress === undefined ? "address" : "internalAddress"];
    return Object.values(addressesOf(host)).map((ip: string) => ({ key: ip, path, what: ip }));
  }).filter(({ path }) => path[2] !== "address" || !reported.has(path[1]));
}

/** One that stands in a group that gives it no role is told of there. */
function withoutGroup(spec: ClusterSpec): Finding[] {
  const named = new Set(ROLES.flatMap((role) => groupNames(spec, role)));
  return spec.hosts.flatMap(({ name }, i) =>
    named.has(name)
      ? []
      : [
          {
            path: ["hosts", i, "name"],
            because: [["roleGroups"]],
            message: "is in no role group, so only its system is prepared; write it into roleGroups, or remove it",
          },
        ],
  );
}

const count = (spec: ClusterSpec, role: Role) => groupNames(spec, role).length;

const noMaster = (spec: ClusterSpec): Finding[] =>
  count(spec, "master") > 0
    ? []
    : [{ path: groupPath("master"), message: "a cluster needs a master; write at least one host here" }];

const even = (role: Role, what: string) => (spec: ClusterSpec) => {
  const hosts = count(spec, role);
  const message = `${hosts} ${what} bear no more failures than ${hosts - 1}; write ${hosts - 1} or ${hosts + 1} hosts`;
  return hosts > 0 && hosts % 2 === 0 ? [{ path: groupPath(role), message }] : [];
};

function registryHost(spec: ClusterSpec): Finding[] {
  const hosts = count(spec, "registry");
  const { type, privateRegistry } = spec.registry;
  if (hosts > 1)
    return [{ path: groupPath("registry"), message: `only one host can be the registry, not ${hosts}; write one` }];
  if (hosts === 1 && type === "external")
    return [
      {
        path: groupPath("registry"),
        because: [["registry", "type"]],
        message: "registry.type is external, so no host is the registry; write an empty list",
      },
    ];
  if (hosts === 1 && privateRegistry === "")
    return [
      {
        path: ["registry", "privateRegistry"],
        message: "the registry on the registry host needs a domain; write for example registry.example.com",
      },
    ];
  return [];
}

/** It names the registry host; a registry that is somebody's own is a mirror of what upstream has. */
function registryUnused(spec: ClusterSpec): Finding[] {
  if (count(spec, "registry") > 0 || spec.registry.privateRegistry === "") return [];
  const message =
    "names a registry host, and there is none: no image comes from it; write mirrors.images for a registry of your own";
  return [{ path: ["registry", "privateRegistry"], because: [groupPath("registry")], message }];
}

function balancerHosts(spec: ClusterSpec): Finding[] {
  const hosts = count(spec, "loadbalancer");
  const { externalLoadBalancer } = spec.controlPlaneEndpoint;
  const because: Path[] = [["controlPlaneEndpoint", "externalLoadBalancer"]];
  const path = groupPath("loadbalancer");
  if (externalLoadBalancer === "kubexm" && hosts === 0)
    return [{ path, because, message: "externalLoadBalancer is kubexm, which needs hosts here; write at least one" }];
  if (externalLoadBalancer !== "kubexm" && hosts > 0)
    return [
      {
        path,
        because,
        message: `externalLoadBalancer is ${externalLoadBalancer || "empty"}, so no host is a load balancer; write an empty list`,
      },
    ];
  return [];
}

function endpoint(spec: ClusterSpec): Finding[] {
  const {
    externalLoadBalancer: external,
    internalLoadbalancer: internal,
    externalDNS,
    lb_address,
  } = spec.controlPlaneEndpoint;
  const at = (key: string): Path => ["controlPlaneEndpoint", key];
  const masters = count(spec, "master");
  const virtual = external === "kubexm" || internal === "kube-vip";
  const owner = spec.hosts.find(
    (host) => lb_address !== "" && Object.values(addressesOf(host)).includes(normal(lb_address)),
  );
  const table: [boolean, Finding][] = [
    [
      external === "" && internal === "" && masters > 1,
      {
        path: at("internalLoadbalancer"),
        because: [at("externalLoadBalancer"), groupPath("master")],
        message: `${masters} masters without an external load balancer need somebody before them; write externalLoadBalancer: external, and in lb_address the address of a load balancer of your own`,
      },
    ],
    [
      externalDNS && !virtual && lb_address !== "",
      {
        path: at("lb_address"),
        because: [at("externalDNS"), at("externalLoadBalancer"), at("internalLoadbalancer")],
        message: 'must be empty with externalDNS, which resolves the domain; write ""',
      },
    ],
    [
      lb_address === "" && virtual,
      {
        path: at("lb_address"),
        because: [at(external === "kubexm" ? "externalLoadBalancer" : "internalLoadbalancer")],
        message: `the virtual address for ${external === "kubexm" ? "the load balancer" : "kube-vip"} is missing; write a free address of the hosts' network`,
      },
    ],
    [
      lb_address === "" && !virtual && external === "external" && !externalDNS,
      {
        path: at("lb_address"),
        because: [at("externalLoadBalancer"), at("internalLoadbalancer"), at("externalDNS")],
        message: "the address of the external load balancer is missing; write it",
      },
    ],
    [
      virtual && owner !== undefined,
      {
        path: at("lb_address"),
        because: [["hosts", "*"]],
        message: `the virtual address belongs to ${owner?.name ?? ""}; write an address that no host has`,
      },
    ],
  ];
  return table.flatMap(([wrong, finding]) => (wrong ? [finding] : []));
}

function etcdHosts(spec: ClusterSpec): Finding[] {
  const { type, external, heartbeatInterval, electionTimeout } = spec.etcd;
  const members = groupNames(spec, "etcd");
  const masters = new Set(groupNames(spec, "master"));
  const strangers = members.filter((name) => !masters.has(name));
  const path = groupPath("etcd");
  const because: Path[] = [["etcd", "type"]];
  const table: [boolean, Finding][] = [
    [
      type === "kubexm" && members.length === 0,
      { path, because, message: "etcd.type kubexm needs hosts here; write at least one, or etcd.type: kubeadm" },
    ],
    [
      type === "kubeadm" && members.length > 0 && (strangers.length > 0 || members.length !== masters.size),
      {
        path,
        because: [...because, groupPath("master")],
        message:
          "with etcd.type kubeadm every master, and no other host, has a member; write the same hosts as for master, or an empty list",
      },
    ],
    [
      type === "external" && members.length > 0,
      { path, because, message: "etcd.type is external, so no host has a member; write an empty list" },
    ],
    [
      type === "external" && external === undefined,
      {
        path: ["etcd", "external"],
        because,
        message: "etcd.type external needs the members' addresses; write endpoints here",
      },
    ],
    [
      type !== "external" && external !== undefined,
      {
        path: ["etcd", "external"],
        because,
        message: `is not used with etcd.type ${type}; remove it, or write etcd.type: external`,
      },
    ],
    [
      external !== undefined && (external.certFile === undefined) !== (external.keyFile === undefined),
      { path: ["etcd", "external"], message: "certFile and keyFile belong together; write both or none" },
    ],
    [
      electionTimeout < 5 * heartbeatInterval,
      {
        path: ["etcd", "electionTimeout"],
        because: [["etcd", "heartbeatInterval"]],
        message: `must be at least 5 times heartbeatInterval; write ${5 * heartbeatInterval} or more`,
      },
    ],
  ];
  return table.flatMap(([wrong, finding]) => (wrong ? [finding] : []));
}

const wordsWrong = ({ address, names }: HostsRecord): string | undefined =>
  parseIp(address) === undefined || names.length === 0 ? address : names.find((name) => !z.regexes.hostname.test(name));

function freeRecords(spec: ClusterSpec): Finding[] {
  const texts: [Path, string][] = [
    [["host"], spec.host],
    [["dns", "dnsEtcHosts"], spec.dns.dnsEtcHosts],
  ];
  return texts.flatMap(([path, text]) =>
    hostsRecords(text)
      .flatMap((record) => wordsWrong(record) ?? [])
      .slice(0, 1)
      .map((word) => ({
        path,
        message: `${word} is not a record of a hosts file; write 192.0.2.9 name.example.com`,
      })),
  );
}

/** Nodes are told to each other by address; one that is only known later ends so. */
function withoutAddress(spec: ClusterSpec): Finding[] {
  if (spec.kubernetes.type === "none") return [];
  return hostsWithRoles(spec).flatMap(({ host, roles }) => {
    const node = roles.includes("master") || roles.includes("worker");
    const found = Object.keys(addressesOf(host)).length > 0 || host.address.endsWith(".invalid");
    if (!node || found) return [];
    const path = [
      "hosts",
      spec.hosts.indexOf(host),
      host.internalAddress === undefined ? "address" : "internalAddress",
    ];
    return [{ path, message: "nodes know each other by IP address; write the host's in internalAddress" }];
  });
}

export const HOST_RULES: readonly Rule[] = [
  { name: "range", severity: "error", check: ranges },
  { name: "unknown-host", severity: "error", check: unknownHosts },
  { name: "listed-twice", severity: "error", check: listedTwice },
  { name: "host-name-twice", severity: "error", check: namesTwice },
  { name: "host-address-twice", severity: "error", check: addressesTwice },
  { name: "internal-address-twice", severity: "error", check: internalTwice },
  { name: "node-address", severity: "error", check: withoutAddress },
  { name: "host-without-role", severity: "warning", check: withoutGroup },
  { name: "master-required", severity: "error", check: noMaster },
  { name: "even-masters", severity: "warning", check: even("master", "masters") },
  { name: "even-etcd", severity: "warning", check: even("etcd", "members of etcd") },
  { name: "registry-host", severity: "error", check: registryHost },
  { name: "registry-unused", severity: "warning", check: registryUnused },
  { name: "loadbalancer-hosts", severity: "error", check: balancerHosts },
  { name: "control-plane-endpoint", severity: "error", check: endpoint },
  { name: "etcd-hosts", severity: "error", check: etcdHosts },
  { name: "hosts-records", severity: "error", check: freeRecords },
];
