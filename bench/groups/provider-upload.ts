import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab, LabHost } from "../../lab/hosts.js";
import type { Progress } from "../../toolchain/progress.js";
import { run } from "../../toolchain/process.js";
import { turned } from "../contest.js";
import { onEach } from "../hosts.js";
import { type Taken, type Tool, measured } from "../measure.js";
import { KEX } from "../peers.js";
import { type Row, type Target, median, rowsOf } from "../report.js";
import { reach } from "../role-resources.js";

const MEGABYTES = 200;
const TO = "/var/tmp/bench-upload";

interface Way {
  name: string;
  address: string;
  port: number;
  targets: readonly Target[];
  end: () => void;
}

async function slowWay(host: LabHost, rttMs: number, targets: readonly Target[]): Promise<Way> {
  const proxy = spawn(
    process.execPath,
    [join(__dirname, "..", "run-proxy.js"), host.address, String(host.port), String(rttMs / 2)],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [line] = (await once(proxy.stdout, "data")) as [Buffer];
  const name = `round trip ${rttMs} ms`;
  return { name, address: "127.0.0.1", port: Number(line), targets, end: () => void proxy.stdin.end() };
}

function tools(lab: Lab, host: LabHost, way: Way, file: string, sha256: string, folder: string): Record<string, Tool> {
  const [known] = reach(lab);
  const spec = join(folder, "spec.json");
  const knownHosts = join(folder, "known_hosts");
  writeFileSync(spec, JSON.stringify({ ...known, ...way, knownHostsPath: knownHosts, agent: false }, specKeys));
  const options = [
    ...["-q", "-F", "none", "-i", lab.privateKeyPath, "-o", `Port=${way.port}`, "-o", `KexAlgorithms=${KEX}`],
    ...["-o", `UserKnownHostsFile=${knownHosts}`],
  ];
  const at = `${host.user}@${way.address}`;
  const scp = [...options, file, `${at}:${TO}`];
  // Words without blanks and quotes, so that they stand as they are in a script.
  const checked = `scp ${scp.join(" ")} && ssh ${options.join(" ")} ${at} 'openssl dgst -sha256 -r ${TO} | grep -q ^${sha256}'`;
  return {
    ours: { command: process.execPath, args: [join(__dirname, "..", "run-upload.js"), spec, file, sha256, TO] },
    scp: { command: "scp", args: scp },
    "scp, checked": { command: "sh", args: ["-c", checked] },
  };
}

const specKeys = ["name", "address", "port", "user", "privateKeyPath", "knownHostsPath", "agent"];

/** The host's key under the address and port of each way. */
async function writeKnownHosts(lab: Lab, ways: readonly Way[], folder: string): Promise<void> {
  const [key = ""] = await onEach(lab, "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub");
  const names = ways.map(({ address, port }) => (port === 22 ? address : `[${address}]:${port}`));
  writeFileSync(join(folder, "known_hosts"), names.map((name) => `${name} ${key.trim()}\n`).join(""));
}

async function fresh(lab: Lab): Promise<void> {
  await onEach(lab, `rm -f ${TO}`);
  await run("sync", []);
}

function rows({ name, targets }: Way, taken: Record<string, Taken[]>): Row[] {
  const of = (tool: string, figure: (run: Taken) => number) => median((taken[tool] ?? []).map(figure));
  const peers = (figure: (run: Taken) => number) =>
    Object.fromEntries(
      Object.keys(taken)
        .filter((tool) => tool !== "ours")
        .map((tool) => [tool, of(tool, figure)]),
    );
  const speed = (run: Taken) => MEGABYTES / run.seconds;
  const compare = (metric: string, unit: string, figure: (run: Taken) => number, against: readonly Target[] = []) =>
    rowsOf(metric, unit, of("ours", figure), peers(figure), against);
  return [
    ...compare(`upload of ${MEGABYTES} MB, ${name}`, "MB/s", speed, targets),
    ...compare(`upload, ${name}: CPU of the tool`, "s", (run) => run.cpuSeconds),
    ...compare(`upload, ${name}: peak memory`, "MB", (run) => run.peakMB),
  ];
}

/** From the start of the program to its end: with the login, the check of the content on the host, and the sync. */
export async function uploadRows(lab: Lab, folder: string, runs: number, bar: Progress): Promise<Row[]> {
  const [host] = lab.hosts;
  if (!host) return [];
  mkdirSync(folder);
  const file = join(folder, "body");
  const body = randomBytes(MEGABYTES * 1e6);
  writeFileSync(file, body);
  const sha256 = createHash("sha256").update(body).digest("hex");
  const near: Way = {
    name: "no delay",
    address: host.address,
    port: host.port,
    targets: [{ least: 0.8, of: "scp" }],
    end: () => undefined,
  };
  const ways = [near, await slowWay(host, 20, [{ least: 2, of: "scp" }])];
  try {
    await writeKnownHosts(lab, ways, folder);
    const found: Row[] = [];
    for (const way of ways) {
      const all = Object.entries(tools(lab, host, way, file, sha256, folder));
      const taken: Record<string, Taken[]> = Object.fromEntries(all.map(([name]) => [name, []]));
      for (let i = 1; i <= runs; i++) {
        for (const [name, tool] of turned(all, i - 1)) {
          bar.update(`upload, ${way.name}, run ${i}: ${name}`);
          await fresh(lab);
          taken[name]?.push(await measured(tool, folder));
        }
      }
      found.push(...rows(way, taken));
    }
    return found;
  } finally {
    for (const { end } of ways) end();
  }
}
