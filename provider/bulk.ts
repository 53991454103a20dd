import { sh, type Command } from "./shell";
import type { BulkKind, State } from "./step";

interface Bulk {
  /** Asks the host about all names at once; others are only what looks of another kind go by. */
  readonly ask: (names: readonly string[], others: readonly string[]) => Command;
  /** The state of each name, from what was answered. */
  readonly read: (answer: readonly string[], names: readonly string[]) => State[];
}

const S_IFMT = 0o170000;
const types: Readonly<Record<number, string>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" };

/** sha256sum marks a name it had to escape with a leading backslash. */
const sumLine = /^(\\?)([0-9a-f]{64}) [ *](.*)$/;
const unescape = (name: string) =>
  name.replace(/\\([\\nr])/g, (_, sign: string) => ({ n: "\n", r: "\r" })[sign] ?? "\\");

function readPaths(answer: readonly string[], names: readonly string[]): State[] {
  const found = new Map<string, Record<string, string>>();
  for (const line of answer) {
    // A directory service may have a group "domain users".
    const meta = /^meta ([0-9a-f]+) (\d+) ([^/]*)\/([^/]*) (\/.*)$/.exec(line);
    const sum = meta ? null : sumLine.exec(line);
    if (meta) {
      const [, raw = "0", mode = "", owner = "", group = "", name = ""] = meta;
      const type = types[parseInt(raw, 16) & S_IFMT] ?? "other";
      found.set(name, type === "symlink" ? { type } : { type, mode, owner, group });
    } else if (sum) {
      const [, escaped, sha256 = "", name = ""] = sum;
      Object.assign(found.get(escaped ? unescape(name) : name) ?? {}, { sha256 });
    }
  }
  return names.map((name) => found.get(name) ?? { type: "absent" });
}

function readUnits(answer: readonly string[], names: readonly string[]): State[] {
  const blocks = answer.join("\n").split("\n\n");
  return names.map((_, i) => {
    const has = (line: string) => `\n${blocks[i] ?? ""}\n`.includes(`\n${line}\n`);
    if (has("LoadState=not-found")) return { enabled: "absent", running: "no" };
    if (has("LoadState=masked")) return { enabled: "masked", running: "no" };
    return {
      enabled: has("UnitFileState=disabled") || has("UnitFileState=") ? "no" : "yes",
      running: has("ActiveState=active") ? "yes" : "no",
    };
  });
}

function readPackages(answer: readonly string[], names: readonly string[]): State[] {
  const rows = answer.map((line) => line.split(" "));
  return names.map((name): State => {
    const [, version = "", want, status] = rows.find((row) => row[0] === name && row[3] === "installed") ?? [];
    return status === "installed"
      ? { installed: "yes", version, hold: want === "hold" ? "yes" : "no" }
      : { installed: "no" };
  });
}

const sysctlPath = (name: string) => `/proc/sys/${name.replaceAll(".", "/")}`;

function sysctlIn(answer: readonly string[], name: string): string | undefined {
  const head = `${sysctlPath(name)}:`;
  const row = answer.find((line) => line.startsWith(head));
  return row?.slice(head.length).trim().replaceAll(/\s+/g, " ");
}

const readSysctls = (answer: readonly string[], names: readonly string[]): State[] =>
  names.map((name) => ({ value: sysctlIn(answer, name) ?? "absent" }));

/** Named with what is wanted, as what a container may not write is the machine's to set. */
const parted = (name: string) => [name.slice(0, name.indexOf(" ")), name.slice(name.indexOf(" ") + 1)] as const;

function readParameters(answer: readonly string[], names: readonly string[]): State[] {
  return names.map(parted).map(([name, wanted]): State => {
    const value = sysctlIn(answer, name);
    return value === undefined ? { value: wanted, how: "kernel-of-the-machine" } : { value };
  });
}

export const bulks: Readonly<Record<BulkKind, Bulk>> = {
  path: { ask: (names) => sh`bulk_path ${names}`, read: readPaths },
  unit: { ask: (names, others) => sh`bulk_unit ${names.length} ${[...names, ...others]}`, read: readUnits },
  package: { ask: (names) => sh`bulk_package ${names}`, read: readPackages },
  sysctl: { ask: (names) => sh`bulk_sysctl ${names.map(sysctlPath)}`, read: readSysctls },
  parameter: {
    ask: (names) => sh`bulk_parameter ${names.map((name) => sysctlPath(parted(name)[0]))}`,
    read: readParameters,
  },
};
