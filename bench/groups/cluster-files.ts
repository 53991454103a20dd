import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab } from "../../lab/hosts.js";
import { run } from "../../toolchain/process.js";
import type { Progress } from "../../toolchain/progress.js";
import { onEach, withBenchLab } from "../hosts.js";
import { type Taken, type Tool, measured } from "../measure.js";
import { KEX } from "../peers.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import { type RoleJob, reach } from "../role-resources.js";

const HOSTS = 10;
const FILES = 8;
const MEGABYTES = 50;
const TO = "/opt/bench";

interface Body {
  path: string;
  sha256: string;
  to: string;
}

function writeBodies(folder: string): Body[] {
  return Array.from({ length: FILES }, (_, i) => {
    const [name, content] = [`body-${i + 1}`, randomBytes(MEGABYTES * 1e6)];
    const path = join(folder, name);
    writeFileSync(path, content);
    return { path, sha256: createHash("sha256").update(content).digest("hex"), to: `${TO}/${name}` };
  });
}

/** One scp for each host, all at once. */
export function scpTool({ hosts, sshConfig }: Pick<Lab, "hosts" | "sshConfig">, paths: readonly string[]): Tool {
  const scp = `scp -q -F ${sshConfig} -o KexAlgorithms=${KEX} -o BatchMode=yes ${paths.join(" ")}`;
  const each = hosts.map(({ name }) => `${scp} ${name}:${TO} & p="$p $!"`);
  return { command: "sh", args: ["-c", [...each, "for pid in $p; do wait $pid || exit 1; done"].join("\n")] };
}

function providerTool(lab: Lab, files: readonly Body[], folder: string): Tool {
  const job: RoleJob = { hosts: reach(lab), components: { BenchFiles: { files } } };
  const [path, state] = [join(folder, "job.json"), join(folder, "state.json")];
  writeFileSync(path, JSON.stringify(job));
  return { command: process.execPath, args: [join(__dirname, "..", "run-provider.js"), path, "create", state] };
}

function rows(taken: Readonly<Record<string, Taken[]>>): Row[] {
  const of = (tool: string, figure: (run: Taken) => number) => median((taken[tool] ?? []).map(figure));
  const compare = (metric: string, unit: string, figure: (run: Taken) => number, targets: readonly Target[] = []) =>
    rowsOf(
      `${FILES * MEGABYTES} MB of files to ${HOSTS} hosts${metric}`,
      unit,
      of("ours", figure),
      { scp: of("scp", figure) },
      targets,
    );
  return [
    ...compare("", "s", (run) => run.seconds, [{ most: 1.25, of: "scp" }]),
    ...compare(": CPU of the tool", "s", (run) => run.cpuSeconds),
    ...compare(": peak memory of the tool", "MB", (run) => run.peakMB),
  ];
}

const FRESH = `rm -rf ${TO} /var/lib/kubexm && mkdir -p ${TO}`;
const ALL = `[ $(find ${TO} -type f -size ${MEGABYTES * 1e6}c | wc -l) = ${FILES} ]`;

/** What a component with programs does on every host: login, look, upload, check of the content there, its place. */
export async function distributionRows(cwd: string, runs: number, bar: Progress): Promise<Row[]> {
  const folder = join(cwd, "bodies");
  mkdirSync(folder);
  const bodies = writeBodies(folder);
  const taken: Record<string, Taken[]> = { ours: [], scp: [] };
  await withBenchLab({ name: "bench-files", cwd, hosts: HOSTS }, async (lab) => {
    const tools = Object.entries({
      ours: providerTool(lab, bodies, folder),
      scp: scpTool(
        lab,
        bodies.map(({ path }) => path),
      ),
    });
    for (let i = 1; i <= runs; i++) {
      for (const [name, tool] of i % 2 === 0 ? [...tools].reverse() : tools) {
        bar.update(`files, run ${i}: ${name}`);
        await onEach(lab, FRESH);
        await run("sync", []);
        taken[name]?.push(await measured(tool, folder));
        await onEach(lab, ALL);
      }
    }
  });
  rmSync(folder, { recursive: true });
  return rows(taken);
}
