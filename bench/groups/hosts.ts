import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import type { Lab } from "../../lab/hosts.js";
import { scratch } from "../../toolchain/cache.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";
import type { Group, Measured } from "../groups.js";
import { OWN_PACKAGES, type SshCount, onEach, sshCounts, withBenchLab } from "../hosts.js";
import { type Taken, measured } from "../measure.js";
import { KEX, sshTool } from "../peers.js";
import { type Row, median, rowsOf } from "../report.js";
import { root } from "../root.js";
import { labVersions, versionOf } from "../versions.js";

const NAME = "bench-hosts";
/** sshd and journald finish what a run left them to do. */
const SETTLE_MS = 700;
interface ClusterFile {
  spec: { hosts: { name: string }[]; roleGroups: Record<string, string[]> };
}

/** A cluster.yaml of the first hosts of a lab; hosts are only made ready. */
function write(lab: Lab, file: string, hosts: number): void {
  const cluster = parse(readFileSync(lab.clusterYaml, "utf8")) as ClusterFile;
  const [first = "", ...rest] = lab.hosts.slice(0, hosts).map(({ name }) => name);
  const spec = {
    ...cluster.spec,
    hosts: cluster.spec.hosts.slice(0, hosts),
    roleGroups: { etcd: [first], master: [first], worker: rest },
    kubernetes: { type: "none" },
    system: { ntpServers: [first], timezone: "Asia/Shanghai" },
  };
  writeFileSync(file, stringify({ ...cluster, spec }));
}

type Phase = "preflight" | "first" | "again" | "drift" | "floor" | "grown";
type Runs = Record<Phase, Taken[]>;

/** All the work of a cluster's life, once. `all` hosts are there, one of them comes last. */
async function life(lab: Lab, folder: string, runs: Runs, last: boolean): Promise<SshCount[]> {
  const all = lab.hosts.length;
  const file = join(folder, "cluster.yaml");
  const kubexm = (verb: string, ...flags: string[]) =>
    measured(
      { command: process.execPath, args: [join(root, "dist", "cli", "main.js"), verb, "-f", file, ...flags] },
      folder,
    );
  write(lab, file, all);
  runs.preflight.push(await kubexm("preflight"));
  write(lab, file, all - 1);
  runs.first.push(await kubexm("up", "--yes"));
  runs.again.push(await kubexm("up", "--yes", "--refresh", "--expect-no-changes"));
  runs.drift.push(await kubexm("drift"));
  const script = join(folder, "floor.sh");
  writeFileSync(script, "systemctl is-active chrony >/dev/null && sha256sum /etc/hosts >/dev/null\n");
  runs.floor.push(await measured(sshTool(lab, script), folder));
  write(lab, file, all);
  await sleep(SETTLE_MS);
  const since = Date.now();
  runs.grown.push(await kubexm("up", "--yes"));
  await sleep(SETTLE_MS);
  const counts = last ? await sshCounts(lab, since) : [];
  await kubexm("destroy", "--yes");
  rmSync(join(folder, ".kubexm", NAME), { recursive: true });
  return counts;
}

function rows(hosts: number, runs: Runs, grown: readonly SshCount[]): Row[] {
  const seconds = (phase: Phase) => median(runs[phase].map((run) => run.seconds));
  const name = (what: string) => `${what}, ${hosts} hosts`;
  const others = grown.slice(1, -1);
  return [
    ...rowsOf(name("kubexm preflight"), "s", seconds("preflight"), {}, hosts >= 80 ? [{ most: 5 }] : []),
    ...rowsOf(name("first up of host readiness (packages are there)"), "s", seconds("first")),
    ...rowsOf(name("up --refresh, nothing to do"), "s", seconds("again"), { floor: seconds("floor") }),
    ...rowsOf(name("kubexm drift"), "s", seconds("drift"), { floor: seconds("floor") }, [{ most: 1.5, of: "floor" }]),
    ...rowsOf(name("one host more"), "s", seconds("grown")),
    ...rowsOf(
      name("one host more: sessions on each of the others"),
      "",
      median(others.map(({ sessions }) => sessions)),
    ),
    ...rowsOf(name("one host more: sessions on the first, which serves time"), "", grown[0]?.sessions ?? 0),
  ];
}

async function sized(cwd: string, hosts: number, count: number, bar: Progress): Promise<Row[]> {
  const options = { name: NAME, cwd, hosts: hosts + 1, packages: OWN_PACKAGES, sshd: { LogLevel: "VERBOSE" } };
  return withBenchLab(options, async (lab) => {
    const runs: Runs = { preflight: [], first: [], again: [], drift: [], floor: [], grown: [] };
    let grown: SshCount[] = [];
    await onEach(lab, "sync");
    for (let i = 1; i <= count; i++) {
      bar.update(`${hosts} hosts, run ${i}`);
      grown = await life(lab, cwd, runs, i === count);
    }
    return rows(hosts, runs, grown);
  });
}

export const hosts: Group = ({ hosts: sizes, runs }, save) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench hosts");
    const { version } = await ensurePulumi();
    const ssh = await versionOf("ssh", "-V");
    const sofar: Measured = {
      versions: { ...(await labVersions()), pulumi: version, ssh, "key exchange": KEX },
      rows: [],
    };
    for (const size of sizes) {
      sofar.rows.push(...(await sized(cwd, size, runs, bar)));
      save(sofar);
    }
    bar.done();
    return sofar;
  });
