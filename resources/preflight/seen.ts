import { textOf } from "../../provider/errors";
import { osProfile, type OsProfile } from "../../provider/os";

export interface Socket {
  readonly protocol: string;
  readonly port: number;
  readonly program?: string;
  readonly pid?: number;
}

export type Answer = "open" | "closed" | "unknown-name" | "refused-by-firewall";

/** What a host said of itself. */
export interface Seen {
  readonly os: OsProfile | string;
  /** How far its clock is before ours, in seconds: the least and the most it can be. */
  readonly ahead: readonly [number, number];
  readonly hostname: string;
  /** Addresses of the host itself alone that its hosts file gives to its name. */
  readonly loopback: readonly string[];
  /** Its hosts file is written anew at every boot. */
  readonly rewritten: boolean;
  /** Kernel parameters that are set at boot after ours: file, name and value. */
  readonly later: readonly (readonly [file: string, name: string, value: string])[];
  /** What keeps its clock right; "machine": the one that a container runs on. */
  readonly timekeepers: readonly string[];
  readonly kernel: string;
  readonly arch: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly swap: readonly string[];
  readonly cgroup: "v1" | "v2";
  readonly controllers: readonly string[];
  /** loaded, built-in, there, missing or unknown, by module. */
  readonly modules: Readonly<Record<string, string>>;
  readonly uuid: string;
  readonly macs: readonly string[];
  readonly units: readonly Installed[];
  readonly binaries: readonly Installed[];
  /** Files and folders that Kubernetes, etcd or a network plugin leave behind. */
  readonly left: readonly string[];
  /** What stands beside etcd's own data in the folder of it. */
  readonly besidesEtcd: readonly string[];
  /** Interfaces whose default route the kernel itself learned from router advertisements. */
  readonly advertised: readonly string[];
  /** What our ledger says we made, as far as it has to do with Kubernetes. */
  readonly ledger: readonly string[];
  /** Nodes of clusters of ours that this host is, by their owners in the ledger. */
  readonly places: readonly string[];
  /** Absent: nothing on the host can tell. */
  readonly sockets?: readonly Socket[];
  readonly nameservers: readonly string[];
  readonly answering: readonly string[];
  /** Absent: no SELinux. */
  readonly selinux?: "enforcing" | "permissive";
  readonly firewall: readonly string[];
  /** The first rule of iptables that keeps packets from the host as a whole; absent: none. */
  readonly iptables?: string;
  readonly zone: string;
  readonly zoneKnown: "yes" | "no" | "no-zones";
  readonly room: readonly { path: string; mount: string; freeGiB: number }[];
  /** Seconds, one per write; absent: not asked. */
  readonly writes: readonly number[];
  /** What came of each try, by host and port; a try without an answer is not in it. */
  readonly reached: ReadonlyMap<string, Answer>;
  /** Whether it has what it takes to try. */
  readonly canProbe: boolean;
}

export interface Installed {
  readonly name: string;
  readonly path: string;
  readonly version: string;
}

const arches: Readonly<Record<string, string>> = { x86_64: "amd64", aarch64: "arm64" };

const installed = (text: string): Installed => {
  const [name = "", path = "", ...version] = text.split(" ");
  return { name, path, version: version.join(" ") };
};

/** A line of `ss -Hlntup`. */
export function socketOf(line: string): Socket | undefined {
  const [protocol = "", , , , local = ""] = line.split(/\s+/);
  if (!["tcp", "udp"].includes(protocol)) return undefined;
  const port = Number(/:(\d+)$/.exec(local)?.[1]);
  if (!Number.isInteger(port)) return undefined;
  const [, program, pid] = /users:\(\("([^"]+)",pid=(\d+)/.exec(line) ?? [];
  return { protocol, port, ...(program !== undefined && { program, pid: Number(pid) }) };
}

/** Without a family it knows, kubexm would not even know the package manager. */
function osOf(text: string): OsProfile | string {
  try {
    return osProfile(text);
  } catch (error) {
    return textOf(error);
  }
}

const FIREWALLS = ["firewalld", "nftables"];
const TIMEKEEPERS = ["chrony", "chronyd", "ntp", "ntpd", "ntpsec", "openntpd", "systemd-timesyncd"];
export const UNITS: readonly string[] = [...FIREWALLS, ...TIMEKEEPERS];

const rowsOf = (output: string) =>
  output.split("\n").flatMap((line) => {
    const at = line.indexOf("=");
    return line.startsWith("@") && at > 0 ? [[line.slice(1, at), line.slice(at + 1)] as const] : [];
  });

/** What came of the tries to reach others. */
export function parseReached(output: string): Pick<Seen, "reached" | "canProbe"> {
  const rows = rowsOf(output);
  const reached = rows
    .filter(([key]) => key === "reach")
    .map(([, text]) => {
      const [host = "", port = "", answer = ""] = text.split(" ");
      return [`${host}:${port}`, answer as Answer] as const;
    });
  return { reached: new Map(reached), canProbe: !rows.some(([key]) => key === "bash") };
}

/** What the script of look.ts printed, its first line having come between `sent` and `came` (seconds of our clock). */
export function parseSeen(output: string, { sent, came }: { sent: number; came: number }): Seen {
  const rows = rowsOf(output);
  const all = (key: string) => rows.filter(([name]) => name === key).map(([, value]) => value);
  const one = (key: string) => all(key)[0] ?? "";
  const has = (key: string) => rows.some(([name]) => name === key);
  if (!has("end")) throw new Error("the look ended early");
  const time = Number(one("time"));
  const limits = all("limit").map(Number).filter(Number.isFinite);
  const machine = one("arch");
  const selinux = one("enforce");
  const active = all("active");
  return {
    os: osOf(output),
    ahead: [time - came, time - sent],
    hostname: one("hostname"),
    loopback: all("loopback"),
    rewritten: has("rewritten"),
    later: all("later").map((text) => {
      const [, file = "", name = "", value = ""] = /^(\S+) ([^\s=]+)\s*=\s*(.*?)\s*$/.exec(text) ?? [];
      return [file, name.replaceAll("/", "."), value];
    }),
    timekeepers: [...active.filter((unit) => TIMEKEEPERS.includes(unit)), ...(has("container") ? ["machine"] : [])],
    kernel: one("kernel"),
    arch: arches[machine] ?? machine,
    cpus: Number(one("cpus")),
    memoryMiB: Math.floor(Math.min(Number(one("memoryKiB")) / 1024, ...limits.map((bytes) => bytes / 2 ** 20))),
    swap: all("swap"),
    cgroup: one("cgroup") === "v2" ? "v2" : "v1",
    controllers: all("controllers").flatMap((words) => words.split(" ")),
    modules: Object.fromEntries(all("module").map((text) => text.split(" ").slice(0, 2) as [string, string])),
    uuid: one("uuid").toLowerCase(),
    macs: [...new Set(all("mac"))].filter((mac) => !/^[0:]*$/.test(mac)),
    units: all("unit").map(installed),
    binaries: all("binary").map(installed),
    left: all("left"),
    besidesEtcd: all("besides"),
    ledger: all("ledger"),
    places: all("place"),
    ...(!has("sockets") && { sockets: output.split("\n").flatMap((line) => socketOf(line) ?? []) }),
    nameservers: all("nameserver"),
    answering: all("answers"),
    advertised: all("advertised"),
    ...(selinux !== "" && { selinux: selinux === "1" ? ("enforcing" as const) : ("permissive" as const) }),
    firewall: [...active.filter((unit) => FIREWALLS.includes(unit)), ...(has("ufw") ? ["ufw"] : [])],
    ...(has("iptables") && { iptables: one("iptables") }),
    zone: one("zone").replace(/^.*\/zoneinfo\//, ""),
    zoneKnown: has("zones") ? (one("zones") === "none" ? "no-zones" : "no") : "yes",
    room: all("room").map((text, i) => {
      const [, free = "", mount = ""] = /^(\d+) (.*)$/.exec(text) ?? [];
      return { path: all("path")[i] ?? "", mount, freeGiB: Number(free) / 2 ** 20 };
    }),
    writes: all("write").map(Number).filter(Number.isFinite),
    ...parseReached(output),
  };
}
