import { readFileSync } from "node:fs";
import { GIVEN, OWN, docker } from "../lab/docker.js";
import { type Lab, type LabHost, type LabOptions, labDown, labExec, labUp } from "../lab/hosts.js";
import { inOrder } from "../test/harness/pool.js";

/** What a cluster's hosts get by apt. Where they have it beforehand, what the network needs for it is nobody's merit. */
export const OWN_PACKAGES = "socat conntrack ebtables ipset bash-completion nfs-common open-iscsi chrony".split(" ");

const AT_ONCE = 8;
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** A lab for the time of `use`, also when that is interrupted. */
export async function withBenchLab<T>(
  options: LabOptions & { name: string },
  use: (lab: Lab) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => stop.abort(new Error(signal));
  const stopped = new Promise<never>((_, reject) =>
    stop.signal.addEventListener("abort", () => reject(stop.signal.reason as Error)),
  );
  stopped.catch(() => undefined);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    const lab = await labUp({ ...options, keep: false, signal: stop.signal });
    try {
      return await Promise.race([use(lab), stopped]);
    } finally {
      await labDown(options.name, options.cwd);
    }
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

/** A script on every host as root, not over SSH: the same for all, or each its own. */
export async function onEach(
  { hosts }: Pick<Lab, "hosts">,
  script: string | ((host: string) => string),
): Promise<string[]> {
  const scriptOf = typeof script === "string" ? () => script : script;
  return inOrder(hosts, AT_ONCE, async (host) => (await labExec(host, scriptOf(host.name))).stdout);
}

/** One controller's folder of a container. */
export interface Cgroup {
  version: 1 | 2;
  dir: string;
}

/** From /proc/PID/cgroup; the container's own folder, not one that its systemd made below. */
export function cgroupIn(text: string, controller: string): Cgroup {
  const lines = text
    .trim()
    .split("\n")
    .map((line) => line.split(":"));
  const own = (path = "") => /^.*?[0-9a-f]{64}[^/]*/.exec(path)?.[0] ?? path;
  const first = lines.find(([, names = ""]) => names.split(",").includes(controller));
  if (first) return { version: 1, dir: `/sys/fs/cgroup/${controller}${own(first[2])}` };
  const unified = lines.find(([number]) => number === "0");
  return { version: 2, dir: `/sys/fs/cgroup${own(unified?.[2])}` };
}

async function cgroupOf({ container, ownDocker }: LabHost, controller: string): Promise<Cgroup> {
  const pid = await docker(ownDocker ? OWN : GIVEN, ["inspect", "--format", "{{.State.Pid}}", container]);
  return cgroupIn(readFileSync(`/proc/${pid}/cgroup`, "utf8"), controller);
}

const figures = (path: string): Record<string, number> =>
  Object.fromEntries(
    readFileSync(path, "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" "))
      .map(([key = "", value]) => [key, Number(value)]),
  );

/** Tells the CPU seconds each host has used so far. */
export async function cpuMeter(lab: Lab): Promise<() => number[]> {
  const groups = await Promise.all(lab.hosts.map((host) => cgroupOf(host, "cpuacct")));
  return () =>
    groups.map(({ version, dir }) =>
      version === 1
        ? Number(readFileSync(`${dir}/cpuacct.usage`, "utf8")) / 1e9
        : (figures(`${dir}/cpu.stat`)["usage_usec"] ?? 0) / 1e6,
    );
}

/** What each host holds in memory that could not be had back by dropping file caches, in MB. */
export async function memoryOf(lab: Lab): Promise<number[]> {
  const groups = await Promise.all(lab.hosts.map((host) => cgroupOf(host, "memory")));
  return groups.map(({ version, dir }) => {
    const stat = figures(`${dir}/memory.stat`);
    const of = (key: string) => stat[key] ?? 0;
    const usage = Number(readFileSync(`${dir}/${version === 1 ? "memory.usage_in_bytes" : "memory.current"}`, "utf8"));
    const files =
      version === 1 ? of("total_inactive_file") + of("total_active_file") : of("inactive_file") + of("active_file");
    return (usage - files) / 1e6;
  });
}

export interface SshCount {
  connections: number;
  sessions: number;
}

/** From what sshd wrote with LogLevel VERBOSE. */
export function sshCount(journal: string): SshCount {
  const lines = journal.split("\n");
  const count = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;
  return { connections: count(/^Connection from /), sessions: count(/^Starting session: /) };
}

/** What the hosts saw since a moment of this machine's clock, which is theirs too. */
export async function sshCounts(lab: Lab, sinceMs: number): Promise<SshCount[]> {
  const since = `@${(sinceMs / 1000).toFixed(3)}`;
  const journals = await onEach(lab, `journalctl --unit ssh --output cat --no-pager --since ${since}`);
  return journals.map(sshCount);
}
