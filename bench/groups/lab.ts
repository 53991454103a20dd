import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runningDockers } from "../../lab/docker.js";
import { run } from "../../toolchain/process.js";
import { scratch } from "../../toolchain/cache.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import type { Group, Measured } from "../groups.js";
import { memoryOf, withBenchLab } from "../hosts.js";
import { type Taken, measured } from "../measure.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import { root } from "../root.js";
import { labVersions } from "../versions.js";

const NAME = "bench-lab";
const HOSTS = 10;
const IDLE_SECONDS = 30;

const demoWords = [join(root, "scripts", "run.mjs"), "demo"];

/** What the demo takes, in a folder of its own: a lab and a state that are nobody else's. What it starts must go on after it. */
async function demo(cwd: string): Promise<Taken> {
  try {
    return await measured({ command: process.execPath, args: demoWords, keep: true }, cwd);
  } finally {
    await run(process.execPath, [...demoWords, "down"], { cwd, timeoutMs: 15 * 60_000 });
  }
}

/** Peak memory is that of all it starts (Docker and the mirror, too) without the hosts, CPU time that of what ends with it. */
export const demoRows = (what: string, taken: readonly Taken[], target: readonly Target[] = []): Row[] => [
  ...rowsOf(`npm run demo, ${what} (lab and up)`, "s", median(taken.map(({ seconds }) => seconds)), {}, target),
  ...rowsOf(`npm run demo, ${what}: CPU time`, "s", median(taken.map(({ cpuSeconds }) => cpuSeconds))),
  ...rowsOf(`npm run demo, ${what}: peak memory`, "MB", median(taken.map(({ peakMB }) => peakMB))),
];

/** Ten hosts up, `runs` times; memory once they have been left alone for a while. */
async function hostFigures(cwd: string, runs: number, bar: Progress) {
  const ready: number[] = [];
  const memory: number[] = [];
  const options = { name: NAME, cwd, hosts: HOSTS };
  // The first builds the image, if need be, and brings it into memory.
  await withBenchLab({ ...options, hosts: 1 }, () => Promise.resolve());
  for (let i = 1; i <= runs; i++) {
    bar.update(`${HOSTS} hosts, run ${i}`);
    const since = performance.now();
    await withBenchLab(options, async (lab) => {
      ready.push((performance.now() - since) / 1000);
      if (i < runs) return;
      bar.update(`idle for ${IDLE_SECONDS} s`);
      await sleep(IDLE_SECONDS * 1000);
      memory.push(...(await memoryOf(lab)));
    });
  }
  return { ready, memory };
}

export const lab: Group = ({ runs }, save) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench lab");
    const sofar: Measured = { versions: await labVersions(), rows: [] };
    const add = (rows: Measured["rows"]) => {
      sofar.rows.push(...rows);
      save(sofar);
    };
    // Another lab keeps the Docker running: else its start is part of the time.
    const docker = (await runningDockers()).length > 0 ? "Docker runs" : "with the start of Docker";
    const { ready, memory } = await hostFigures(cwd, runs, bar);
    add([
      ...rowsOf(`${HOSTS} lab hosts ready for SSH (${docker})`, "s", median(ready), {}, [{ most: 15 }]),
      ...rowsOf("idle lab host, without file cache", "MB", median(memory), {}, [{ most: 40 }]),
    ]);
    const folder = join(cwd, "demo");
    mkdirSync(folder);
    bar.update("demo, first time");
    add(demoRows("the first here", [await demo(folder)]));
    const warm: Taken[] = [];
    for (let i = 1; i <= runs; i++) {
      bar.update(`demo, warm, run ${i}`);
      warm.push(await demo(folder));
    }
    add(demoRows("warm", warm, [{ most: 60 }]));
    bar.done();
    return sofar;
  });
