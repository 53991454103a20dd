import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lab } from "../../lab/hosts.js";
import { scratch } from "../../toolchain/cache.js";
import { type Progress, progress } from "../../toolchain/progress.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";
import { SETTLE_MS, mustHold, turned } from "../contest.js";
import type { Group, Measured, Options } from "../groups.js";
import { type SshCount, cpuMeter, onEach, sshCounts, withBenchLab } from "../hosts.js";
import { type Taken, type Tool, measured } from "../measure.js";
import { KEX, peerVersions, peers as peerTools, sshTool } from "../peers.js";
import { FILES, RESET, checkScript, hostsBlock, makeScript, writeFiles } from "../role.js";
import { roleJobs } from "../role-resources.js";
import type { ProviderRun } from "../run-provider.js";
import { labVersions, versionOf } from "../versions.js";
import { uploadRows } from "./provider-upload.js";
import { type Run, providerRows } from "./provider-rows.js";

const NAME = "bench-provider";

/** How one tool does the role on fresh hosts, and again when nothing is to be done. */
export interface Contestant {
  first: Tool;
  again: Tool;
  /** Forgets what it knows of earlier hosts. */
  forget?: () => void;
}

const node = (name: string, ...args: string[]): Tool => ({
  command: process.execPath,
  args: [join(__dirname, "..", name), ...args],
});

async function contestants(lab: Lab, folder: string, wanted: readonly string[]): Promise<Record<string, Contestant>> {
  const block = hostsBlock(lab);
  const files = writeFiles(join(folder, "role"), block);
  const put = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const check = put("check.sh", checkScript(block));
  const make = put("make.sh", makeScript(block));
  const { whole, split } = roleJobs(lab, join(files, FILES.program.name));
  const job = put("job.json", JSON.stringify(whole));
  const state = join(folder, "state.json");
  const throughPulumi = (file: string): Contestant => ({
    first: node("run-pulumi.js", file, "up"),
    again: node("run-pulumi.js", file, "up", "--refresh"),
    forget: () => rmSync(join(folder, ".kubexm", "bench"), { recursive: true, force: true }),
  });
  const others = await peerTools({ lab, folder, work: "role", files }, wanted);
  return {
    script: { first: sshTool(lab, make), again: sshTool(lab, check) },
    kubexm: {
      first: node("run-provider.js", job, "create", state),
      again: node("run-provider.js", job, "read", state),
    },
    pulumi: throughPulumi(job),
    split: throughPulumi(put("split.json", JSON.stringify(split))),
    ...Object.fromEntries(Object.entries(others).map(([name, tool]) => [name, { first: tool, again: tool }])),
  };
}

interface Place {
  lab: Lab;
  folder: string;
  meter: () => number[];
}

async function once({ lab, folder, meter }: Place, tool: Tool, count: boolean): Promise<Run> {
  const since = Date.now();
  const before = meter();
  const taken: Taken = await measured(tool, folder);
  await sleep(SETTLE_MS);
  const hostCpu = meter().map((seconds, i) => seconds - (before[i] ?? 0));
  const ssh: SshCount[] = count ? await sshCounts(lab, since) : [];
  return { ...taken, hostCpu, ssh };
}

type Runs = Record<string, { first: Run[]; again: Run[] }>;

async function contest(lab: Lab, folder: string, { runs, peers }: Options, bar: Progress): Promise<Runs> {
  const all = Object.entries(await contestants(lab, folder, peers));
  const place = { lab, folder, meter: await cpuMeter(lab) };
  const check = readFileSync(join(folder, "check.sh"), "utf8");
  const result: Runs = Object.fromEntries(all.map(([name]) => [name, { first: [], again: [] }]));
  for (let i = 1; i <= runs; i++) {
    for (const [name, { first, again, forget }] of turned(all, i - 1)) {
      bar.update(`${lab.hosts.length} hosts, run ${i}: ${name}`);
      forget?.();
      await onEach(lab, RESET);
      await sleep(SETTLE_MS);
      result[name]?.first.push(await once(place, first, i === runs));
      await mustHold(lab, check, name);
      result[name]?.again.push(await once(place, again, i === runs));
    }
  }
  return result;
}

/** Whether what kubexm saw on unchanged hosts was what it had made. */
function mustSeeNoDrift(runs: readonly Run[]): void {
  for (const { stdout } of runs) {
    const told = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as ProviderRun;
    if (told.changes > 0) throw new Error(`kubexm sees ${told.changes} differences on hosts that nobody changed`);
  }
}

const labOptions = (cwd: string, hosts: number) => ({
  name: NAME,
  cwd,
  hosts,
  withPython: true,
  // Ansible's apt module would install it by itself.
  packages: ["python3-apt"],
  sshd: { LogLevel: "VERBOSE" },
});

async function versions(): Promise<Record<string, string>> {
  const { version } = await ensurePulumi();
  const ssh = await versionOf("ssh", "-V");
  return { ...(await labVersions()), pulumi: version, ...peerVersions, ssh, "key exchange": KEX };
}

export const provider: Group = (options, save) =>
  scratch("bench", async (cwd) => {
    const bar = progress("bench provider");
    const sofar: Measured = { versions: await versions(), rows: [] };
    const add = (rows: Measured["rows"]) => {
      sofar.rows.push(...rows);
      save(sofar);
    };
    for (const count of options.hosts) {
      await withBenchLab(labOptions(cwd, count), async (lab) => {
        const folder = join(cwd, `with-${count}`);
        mkdirSync(folder);
        const result = await contest(lab, folder, options, bar);
        mustSeeNoDrift(result["kubexm"]?.again ?? []);
        add(providerRows(count, result));
      });
    }
    await withBenchLab(labOptions(cwd, 1), async (lab) =>
      add(await uploadRows(lab, join(cwd, "upload"), options.runs, bar)),
    );
    bar.done();
    return sofar;
  });
