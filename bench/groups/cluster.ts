import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { KUBERNETES_VERSION } from "../../lab/kubernetes.js";
import { wanted } from "../../lab/mirror/build.js";
import { ensurePublished } from "../../lab/mirror/images.js";
import { USUAL_PARTS } from "../../lab/mirror/serve.js";
import { scratch } from "../../toolchain/cache.js";
import { run } from "../../toolchain/process.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";
import { stateOf } from "../cluster-state.js";
import { type Kit, type Pattern, floorTool, networkOf, patternOf, writeKit } from "../floor.js";
import type { Group, Measured } from "../groups.js";
import { OWN_PACKAGES, cpuMeter } from "../hosts.js";
import { type Taken, measured } from "../measure.js";
import { KEX } from "../peers.js";
import { type Shape, type Site, allOf, titleOf, withSite } from "../site.js";
import { labVersions, versionOf } from "../versions.js";
import { distributionRows } from "./cluster-files.js";
import { type Life, type Making, clusterRows } from "./cluster-rows.js";

const SMALL: Shape = { masters: ["m1"], workers: ["w1"], spare: ["w2"] };
const LARGE: Shape = { masters: ["m1", "m2", "m3"], workers: ["w1", "w2"], spare: [] };

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** Makes a cluster, and sees what came of it. */
async function make({ lab, host, shape }: Site, work: () => Promise<Taken>): Promise<Making> {
  await run("sync", []);
  const meter = await cpuMeter(lab);
  const before = sum(meter());
  const since = Date.now();
  const taken = await work();
  const hostCpu = sum(meter()) - before;
  const { lines, nodesReadyMs, dnsReadyMs } = await stateOf(host(shape.masters[0] ?? ""));
  const after = (ms: number) => (ms - since) / 1000;
  return { taken, hostCpu, lines, nodesReady: after(nodesReadyMs), dnsReady: after(dnsReadyMs) };
}

/** What a script may know beforehand: how kubexm did it. */
interface Known {
  patterns: Record<string, Pattern>;
  network: string;
}

async function ours(site: Site, again: number): Promise<{ life: Life; known: Known }> {
  const { shape, host, lab, kubexm, write, fetch } = site;
  await fetch();
  const up = await make(site, () => kubexm("up", "--yes"));
  const noops: Taken[] = [];
  for (let i = 0; i < again; i++) noops.push(await kubexm("up", "--yes", "--refresh", "--expect-no-changes"));
  write(true);
  const added = shape.spare.length > 0 ? await make(site, () => kubexm("up", "--yes")) : undefined;
  const patterns = await Promise.all(allOf(shape).map(async (name) => [name, await patternOf(host(name))] as const));
  return {
    life: { up, again: noops, ...(added && { added }) },
    known: { patterns: Object.fromEntries(patterns), network: networkOf(lab) },
  };
}

async function floor(site: Site, known: Known): Promise<Life> {
  const { shape, lab, folder, fetch } = site;
  const { masters, workers, spare } = shape;
  const [first = "", ...others] = masters;
  const kit: Kit = { ...known, folder: join(folder, "kit"), files: await fetch(), packages: OWN_PACKAGES, masters };
  await writeKit(lab, kit);
  const go = (begin: boolean, masters: readonly string[], workers: readonly string[]) =>
    make(site, () => measured(floorTool(lab, kit.folder, { begin, first, masters, workers }), folder));
  try {
    const up = await go(true, others, workers);
    return { up, again: [], ...(spare.length > 0 && { added: await go(false, [], spare) }) };
  } finally {
    rmSync(kit.folder, { recursive: true });
  }
}

/** A script that makes another cluster than kubexm's is no measure for it. */
function mustBeEqual(one: Life, other: Life): void {
  assert.deepEqual(other.up.lines, one.up.lines, "the script's cluster is not kubexm's");
  assert.deepEqual(other.added?.lines, one.added?.lines, "the script's grown cluster is not kubexm's");
}

interface Contest {
  shape: Shape;
  /** How often each side makes a cluster. */
  runs: number;
  /** How often kubexm looks at it afterwards. */
  again: number;
}

/** kubexm begins, as the script learns from it; after that the order turns. */
async function contest(cwd: string, { shape, runs, again }: Contest, bar: Progress) {
  const lives: Record<"ours" | "floor", Life[]> = { ours: [], floor: [] };
  let known: Known = { patterns: {}, network: "" };
  const sides = {
    ours: () =>
      withSite(cwd, shape, async (site) => {
        const made = await ours(site, again);
        known = made.known;
        return made.life;
      }),
    floor: () => withSite(cwd, shape, (site) => floor(site, known)),
  };
  for (let i = 1; i <= runs; i++) {
    for (const side of i % 2 === 1 ? (["ours", "floor"] as const) : (["floor", "ours"] as const)) {
      bar.update(`${titleOf(shape)}, run ${i}: ${side}`);
      lives[side].push(await sides[side]());
    }
    const [one, other] = [lives.ours.at(-1), lives.floor.at(-1)];
    if (one && other) mustBeEqual(one, other);
  }
  return lives;
}

async function versions(): Promise<Record<string, string>> {
  const { version } = await ensurePulumi();
  const ssh = await versionOf("ssh", "-V");
  return { ...(await labVersions()), pulumi: version, kubernetes: KUBERNETES_VERSION, ssh, "key exchange": KEX };
}

export const cluster: Group = ({ runs }, save) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench cluster");
    const sofar: Measured = { versions: await versions(), rows: [] };
    const add = (rows: Measured["rows"]) => {
      sofar.rows.push(...rows);
      save(sofar);
    };
    await Promise.all(USUAL_PARTS.map((part) => ensurePublished(wanted(part))));
    add(clusterRows(SMALL, await contest(cwd, { shape: SMALL, runs, again: 0 }, bar)));
    // A large cluster takes minutes: it is made less often.
    const fewer = Math.max(1, runs - 2);
    add(clusterRows(LARGE, await contest(cwd, { shape: LARGE, runs: fewer, again: runs }, bar)));
    add(await distributionRows(cwd, runs, bar));
    bar.done();
    return sofar;
  });
