import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runningDockers } from "../../lab/docker.js";
import { run } from "../../toolchain/process.js";
import { scratch } from "../../toolchain/cache.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import type { Group } from "../groups.js";
import { memoryOf, withBenchLab } from "../hosts.js";
import { median, rowsOf } from "../report.js";
import { root } from "../root.js";
import { labVersions } from "../versions.js";

const NAME = "bench-lab";
const HOSTS = 10;
const IDLE_SECONDS = 30;

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return (performance.now() - since) / 1000;
}

/** The demo in a folder of its own: a lab and a state that are nobody else's. */
async function demo(cwd: string, ...words: string[]): Promise<void> {
  await run(process.execPath, [join(root, "scripts", "run.mjs"), "demo", ...words], { cwd, timeoutMs: 15 * 60_000 });
}

async function demoSeconds(cwd: string): Promise<number> {
  try {
    return await seconds(() => demo(cwd));
  } finally {
    await demo(cwd, "down");
  }
}

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

export const lab: Group = ({ runs }) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench lab");
    // Another lab keeps the Docker running: else its start is part of the time.
    const running = (await runningDockers()).length > 0;
    const { ready, memory } = await hostFigures(cwd, runs, bar);
    const folder = join(cwd, "demo");
    mkdirSync(folder);
    bar.update("demo, first time");
    const first = await demoSeconds(folder);
    const demos: number[] = [];
    for (let i = 1; i <= runs; i++) {
      bar.update(`demo, warm, run ${i}`);
      demos.push(await demoSeconds(folder));
    }
    bar.done();
    const docker = running ? "Docker runs" : "with the start of Docker";
    return {
      versions: await labVersions(),
      rows: [
        ...rowsOf(`${HOSTS} lab hosts ready for SSH (${docker})`, "s", median(ready), {}, [{ most: 15 }]),
        ...rowsOf("idle lab host, without file cache", "MB", median(memory), {}, [{ most: 40 }]),
        ...rowsOf("npm run demo, the first here (lab and up)", "s", first),
        ...rowsOf("npm run demo, warm (lab and up)", "s", median(demos), {}, [{ most: 60 }]),
      ],
    };
  });
