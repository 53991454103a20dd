import { parameters } from "../modules/node-kernel";
import { fail, pass, warn, type Judge } from "./checks";
import type { Seen } from "./seen";

/** Releases by ID of os-release; any minor release of one counts. */
const RELEASES: Readonly<Record<string, readonly string[]>> = {
  debian: ["11", "12", "13"],
  ubuntu: ["20.04", "22.04", "24.04"],
  rhel: ["7", "8", "9", "10"],
  centos: ["7", "8", "9", "10"],
  rocky: ["8", "9", "10"],
  almalinux: ["8", "9", "10"],
  openeuler: ["20.03", "22.03", "24.03"],
  kylin: ["V10"],
  uos: ["20"],
  anolis: ["8"],
  amzn: ["2023"],
};

const minorOf = (version: string) => Number(version.split(".")[1]);
const isNode = (roles: readonly string[]) => roles.includes("master") || roles.includes("worker");

export const judgeOs: Judge = ({ os }) => {
  if (typeof os === "string") return fail(os, "take a distribution of the Debian or RHEL family");
  const releases = RELEASES[os.id] ?? [];
  if (releases.some((release) => os.version === release || os.version.startsWith(`${release}.`))) return pass(os.name);
  const known = releases.length === 0 ? "no releases of it" : releases.join(", ");
  return warn(`${os.name}: kubexm knows ${known}`, `nothing: it is treated as of the ${os.family} family`);
};

const ARCHES = ["amd64", "arm64"];

export const judgeArch: Judge = ({ arch }, { arch: wanted }) => {
  if (!ARCHES.includes(arch)) return fail(arch, `take a host with ${ARCHES.join(" or ")}`);
  return wanted === undefined || wanted === arch
    ? pass(arch)
    : fail(`${arch}, cluster.yaml says ${wanted}`, `write arch: ${arch}, or nothing, to the host`);
};

/** kubeadm refuses a control plane with fewer, and etcd must not wait for others; anything else is slow with one. */
const CPUS = 2;

export const judgeCpu: Judge = ({ cpus }, { roles }) => {
  const role = roles.find((name) => name === "master" || name === "etcd");
  if (cpus >= (role === undefined ? 1 : CPUS)) return pass(String(cpus));
  return fail(
    `${cpus} CPU`,
    role === undefined ? "give the host one" : `give it ${CPUS}, which the role ${role} needs`,
  );
};

/** GiB by role, the largest first; firmware and kernel take up to an eighth of what a machine was given. */
const MEMORY: readonly (readonly [string, number])[] = [
  ["master", 4],
  ["etcd", 2],
  ["worker", 2],
  ["registry", 2],
  ["loadbalancer", 1],
];
const KERNEL_SHARE = 1 / 8;

export const judgeMemory: Judge = ({ memoryMiB }, { roles }) => {
  const [role = "", needed = 0] = MEMORY.find(([name]) => (roles as readonly string[]).includes(name)) ?? [];
  const found = `${(memoryMiB / 1024).toFixed(1)} GiB`;
  return memoryMiB >= needed * 1024 * (1 - KERNEL_SHARE)
    ? pass(found)
    : fail(found, `give it ${needed} GiB, which the role ${role} needs`);
};

type Version = readonly [number, number];
const below = (a: Version, b: Version) => (a[0] - b[0] || a[1] - b[1]) < 0;
const text = ([major, minor]: Version) => `${major}.${minor}`;

/** kubeadm refuses an older one from Kubernetes 1.32 on; RHEL 8 has 4.18. */
const KERNEL_SINCE_32: Version = [4, 19];
const KERNEL: Version = [3, 10];
const KERNEL_NFTABLES: Version = [5, 13];

/** systemd sets parameters file by file, in the order of their names. */
function overruled({ later }: Seen): string | undefined {
  const wanted = new Map(parameters.map(({ name, value }) => [name, String(value)]));
  const others = later.filter(([, name, value]) => (wanted.get(name) ?? value) !== value);
  return others.length === 0
    ? undefined
    : others.map(([file, name, value]) => `${name} = ${value} in ${file}`).join(", ");
}

export const judgeKernel: Judge = (seen, { version, nftables, kubeadm }) => {
  const { kernel } = seen;
  const [major = 0, minor = 0] = kernel.split(/[.-]/).map(Number);
  const now: Version = [major, minor];
  const fix = "update the host's kernel, or its distribution";
  if (nftables && below(now, KERNEL_NFTABLES))
    return fail(`${kernel}: nftables needs ${text(KERNEL_NFTABLES)}`, `${fix}; or take another kubernetes.proxyMode`);
  if (below(now, KERNEL)) return fail(`${kernel}: ${text(KERNEL)} is needed`, fix);
  if (minorOf(version) < 32 || !below(now, KERNEL_SINCE_32)) {
    const other = overruled(seen);
    return other === undefined
      ? pass(kernel)
      : warn(`${other}, which is set after kubexm's at every boot`, "take it out of that file");
  }
  const found = `${kernel}: Kubernetes ${version} wants ${text(KERNEL_SINCE_32)}`;
  return kubeadm
    ? fail(found, `${fix}; or write SystemVerification to kubernetes.ignorePreflightErrors, as kubeadm refuses it`)
    : warn(found, fix);
};

export const judgeModules: Judge = ({ modules }, { modules: wanted }) => {
  const named = (state: string) => wanted.filter((name) => (modules[name] ?? "missing") === state);
  const missing = named("missing");
  if (missing.length > 0)
    return fail(
      `the kernel has no ${missing.join(", ")}`,
      "install the kernel's extra modules (linux-modules-extra, kernel-modules-extra), then boot that kernel",
    );
  const unknown = named("unknown");
  return unknown.length === 0
    ? pass(wanted.join(", "))
    : warn(
        `it cannot be told in a container whether the kernel has ${unknown.join(", ")}`,
        `load it on the machine: modprobe ${unknown.join(" ")}`,
      );
};

/** What kubelet limits pods by. */
const CONTROLLERS = ["cpu", "memory", "pids"];
const V1_ENDS = 35;

export const judgeCgroup: Judge = ({ cgroup, controllers }, { cluster, roles, version, cgroupV1 }) => {
  if (!cluster || !isNode(roles)) return undefined;
  const missing = CONTROLLERS.filter((name) => !controllers.includes(name));
  if (missing.length > 0)
    return fail(
      `${cgroup} without ${missing.join(", ")}`,
      `boot with ${missing.map((name) => `cgroup_enable=${name}`).join(" ")} on the kernel's command line`,
    );
  if (cgroup === "v2") return pass("v2");
  const fix = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line";
  if (cgroupV1) return warn("v1, which kubelet was told to take", fix);
  return minorOf(version) >= V1_ENDS
    ? fail(
        `v1, and kubelet ${version} does not start on it`,
        `${fix}; or write failCgroupV1: false to kubernetes.kubeletConfiguration, as long as kubelet has that`,
      )
    : warn(`v1, and kubelet does not start on it from 1.${V1_ENDS} on`, fix);
};
