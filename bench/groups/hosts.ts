import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../../lab/hosts.js";
import { scratch } from "../../toolchain/cache.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";
import { SETTLE_MS, mustHold, turned } from "../contest.js";
import type { Group, Measured, Options } from "../groups.js";
import { OWN_PACKAGES, type SshCount, onEach, sshCounts, withBenchLab } from "../hosts.js";
import { type Taken, type Tool, measured } from "../measure.js";
import { KEX, peerVersions, peers as peerTools, sshTool } from "../peers.js";
import { IN_STEP, RESET, type Ready, SAVE, readyFrom, writeReady } from "../ready.js";
import type { Row } from "../report.js";
import { root } from "../root.js";
import { labVersions, versionOf } from "../versions.js";
import { type Form, clusterText } from "./hosts-files.js";
import { type HostsRuns, hostsRows } from "./hosts-rows.js";

const NAME = "bench-hosts";
/** Ansible without Mitogen takes many times as long, and nothing is held against it here. */
const PEERS = ["pyinfra", "mitogen"];

const kubexmOn =
  (name: string) =>
  (folder: string, verb: string, ...flags: string[]): Promise<Taken> => {
    const args = [join(root, "dist", "cli", "main.js"), verb, "-f", join(folder, name), ...flags];
    return measured({ command: process.execPath, args }, folder);
  };
const CLUSTER = "cluster.yaml";
const NODES = "nodes.yaml";
const kubexm = kubexmOn(CLUSTER);
/** With half of the checks a host is asked that is to be made ready and no more. */
const kubexmOnNodes = kubexmOn(NODES);

/** A lab of the hosts that are made ready, and one that comes later. */
interface Place {
  whole: Lab;
  lab: Lab;
  folder: string;
}

function write({ folder, whole }: Place, hosts: number, form: Form = "ready"): void {
  const text = clusterText(readFileSync(whole.clusterYaml, "utf8"), hosts, form);
  writeFileSync(join(folder, form === "nodes" ? NODES : CLUSTER), text);
}

/** What `measure` gives while the hosts have every component; the other tools make no DNS servers, and nothing of it is timed. */
async function resolving<T>(place: Place, hosts: number, measure: () => Promise<T>): Promise<T> {
  write(place, hosts, "resolving");
  await kubexm(place.folder, "up", "--yes");
  const found = await measure();
  write(place, hosts);
  await kubexm(place.folder, "up", "--yes");
  return found;
}

async function destroy({ folder }: Place): Promise<void> {
  await kubexm(folder, "destroy", "--yes");
  rmSync(join(folder, ".kubexm", NAME), { recursive: true });
}

/** What the other tools are to make of the hosts: kubexm does it, and it is looked at. */
async function learn(place: Place): Promise<Ready> {
  write(place, place.lab.hosts.length);
  await kubexm(place.folder, "up", "--yes");
  const ready = await readyFrom(place.lab);
  await destroy(place);
  return ready;
}

type Check = (host: string) => string;

interface Contest {
  check: Check;
  /** The same over SSH. */
  floor: Tool;
  runs: HostsRuns;
}

/** All the work of a cluster's life, once. */
async function life(place: Place, { check, floor, runs: { ours } }: Contest, last: boolean): Promise<SshCount[]> {
  const { whole, lab, folder } = place;
  const hosts = lab.hosts.length;
  write(place, hosts);
  write(place, hosts, "nodes");
  ours.preflight.push(await kubexmOnNodes(folder, "preflight"));
  ours.first.push(await kubexm(folder, "up", "--yes"));
  await mustHold(lab, check, "kubexm");
  ours.again.push(await kubexm(folder, "up", "--yes", "--refresh", "--expect-no-changes"));
  await resolving(place, hosts, async () => {
    ours.drift.push(await kubexm(folder, "drift"));
    ours.floor.push(await measured(floor, folder));
  });
  ours.idle.push(await kubexm(folder, "up", "--yes", "--expect-no-changes"));
  write(place, hosts + 1);
  await sleep(SETTLE_MS);
  const since = Date.now();
  ours.grown.push(await kubexm(folder, "up", "--yes"));
  await sleep(SETTLE_MS);
  const counts = last ? await sshCounts(whole, since) : [];
  await destroy(place);
  return counts;
}

async function contest(
  place: Place,
  tools: Readonly<Record<string, Tool>>,
  contest: Contest,
  count: number,
  bar: Progress,
) {
  const { whole, lab, folder } = place;
  const { check, runs } = contest;
  let grown: SshCount[] = [];
  for (let i = 1; i <= count; i++) {
    for (const [name, tool] of turned([["kubexm", undefined] as const, ...Object.entries(tools)], i - 1)) {
      bar.update(`${lab.hosts.length} hosts, run ${i}: ${name}`);
      await onEach(whole, RESET);
      await sleep(SETTLE_MS);
      if (tool === undefined) {
        grown = await life(place, contest, i === count);
        continue;
      }
      runs.peers[name]?.first.push(await measured(tool, folder));
      await mustHold(lab, check, name);
      runs.peers[name]?.again.push(await measured(tool, folder));
    }
  }
  return grown;
}

const labOptions = (cwd: string, hosts: number) => ({
  name: NAME,
  cwd,
  hosts,
  withPython: true,
  // Ansible's apt module would install the first by itself.
  packages: ["python3-apt", ...OWN_PACKAGES],
  sshd: { LogLevel: "VERBOSE" },
});

async function sized(cwd: string, hosts: number, { runs: count, peers }: Options, bar: Progress): Promise<Row[]> {
  return withBenchLab(labOptions(cwd, hosts + 1), async (whole) => {
    const folder = join(cwd, `with-${hosts}`);
    mkdirSync(folder);
    const lab = { ...whole, hosts: whole.hosts.slice(0, hosts) };
    const place = { whole, lab, folder };
    await onEach(whole, `${SAVE}sync`);
    bar.update(`${hosts} hosts: what is to be made`);
    const ready = await learn(place);
    const { files, floorOf } = writeReady(join(folder, "ready"), ready);
    const tools = await peerTools(
      { lab, folder, work: "ready", files },
      PEERS.filter((name) => peers.includes(name)),
    );
    const runs: HostsRuns = {
      ours: { preflight: [], first: [], again: [], drift: [], floor: [], idle: [], grown: [] },
      peers: Object.fromEntries(Object.keys(tools).map((name) => [name, { first: [], again: [] }])),
    };
    const check = (host: string) => `${ready.checks[host] ?? "exit 1\n"}${IN_STEP}`;
    const grown = await contest(place, tools, { check, floor: sshTool(lab, floorOf), runs }, count, bar);
    return hostsRows(hosts, runs, grown);
  });
}

export const hosts: Group = (options, save) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench hosts");
    const { version } = await ensurePulumi();
    const ssh = await versionOf("ssh", "-V");
    const sofar: Measured = {
      versions: { ...(await labVersions()), pulumi: version, ...peerVersions, ssh, "key exchange": KEX },
      rows: [],
    };
    for (const size of options.hosts) {
      sofar.rows.push(...(await sized(cwd, size, options, bar)));
      save(sofar);
    }
    bar.done();
    return sofar;
  });
