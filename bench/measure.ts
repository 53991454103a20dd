import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../toolchain/process.js";
import { root } from "./root.js";

/** What a command took, with all processes it started. */
export interface Taken {
  seconds: number;
  cpuSeconds: number;
  /** Of all processes together. */
  peakMB: number;
  processes: { command: string; peakMB: number }[];
  stdout: string;
}

export interface Tool {
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  /** What it leaves running is to go on. */
  keep?: boolean;
}

const MEASURE = join(root, "bench", "measure.py");
const LONGEST_MS = 30 * 60_000;

/** Runs a tool in `folder`, whose file measured.json gets the figures. A bad exit is an error. */
export async function measured({ command, args, env = {}, keep = false }: Tool, folder: string): Promise<Taken> {
  const result = join(folder, "measured.json");
  const { stdout } = await run("python3", [MEASURE, ...(keep ? ["--keep"] : []), result, command, ...args], {
    cwd: folder,
    env,
    timeoutMs: LONGEST_MS,
  });
  return { ...(JSON.parse(readFileSync(result, "utf8")) as Omit<Taken, "stdout">), stdout };
}
