import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { UserError, messageOf } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { progress } from "../toolchain/progress.js";
import { type FileRun, runFile } from "./harness/file.js";
import { inOrder } from "./harness/pool.js";
import { type Tally, describeTally, nothing, sum } from "./harness/tally.js";

interface Tier {
  name: string;
  /** Files at once. */
  width: number;
  minutesPerFile: number;
  /** Its files make labs, and take long. */
  labs: boolean;
  /** Why no test of this tier can run here. */
  problem: () => string | undefined;
}

const repo = join(__dirname, "..", "..");

const noHosts = () =>
  process.getuid?.() === 0 || existsSync("/var/run/docker.sock") || process.env["DOCKER_HOST"]
    ? undefined
    : "needs root, or a running Docker that this user may use: run it with sudo, or leave it out with npm run test:unit";

const TIERS: readonly Tier[] = [
  { name: "unit", width: availableParallelism(), minutesPerFile: 1, labs: false, problem: () => undefined },
  // They mostly wait: for systemd, apt, clocks.
  { name: "hosts", width: 2, minutesPerFile: 20, labs: true, problem: noHosts },
  { name: "cluster", width: 1, minutesPerFile: 25, labs: true, problem: noHosts },
];

const stop = new AbortController();

const say = (text: string) => console.log(text);

function indent(text: string, by: string): string {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => by + line)
    .join("\n");
}

function report(label: string, { failures, ...tally }: Tally, seconds: number, output: string): void {
  const counts = Object.entries(tally)
    .filter(([word, count]) => typeof count === "number" && count > 0 && word !== "seconds")
    .map(([word, count]) => `${String(count)} ${word}`);
  say(
    `${failures.length > 0 ? "FAIL" : "ok  "} ${label}: ${counts.join(", ") || "no tests"} (${seconds.toFixed(1)} s)`,
  );
  if (failures.length === 0) return;
  for (const { name, detail } of failures) say(`  ✖ ${name}\n${indent(detail, "      ")}`);
  if (output.trim() !== "") say(`  it printed:\n${indent(output, "      ")}`);
}

const unheard = { seconds: 0, output: "" };

const failed = (name: string, detail: string): Tally => ({ ...nothing(), failed: 1, failures: [{ name, detail }] });

async function style(): Promise<Tally> {
  const start = Date.now();
  const lint = [join(repo, "scripts", "run.mjs"), "lint"];
  const { code, stderr } = await run(process.execPath, lint, { signal: stop.signal, okCodes: [0, 1] });
  const tally = code === 0 ? { ...nothing(), passed: 1 } : failed("style", stderr);
  report("style", tally, (Date.now() - start) / 1000, "");
  return tally;
}

function filesOf(tier: Tier): string[] {
  const folder = join(__dirname, tier.name);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".test.js"))
    .sort()
    .map((name) => join(folder, name));
}

const label = (file: string) => relative(__dirname, file).replace(/\.js$/, ".ts");

async function runTier(tier: Tier, files: readonly string[], testName: string | undefined): Promise<Tally> {
  const problem = files.length > 0 ? tier.problem() : undefined;
  if (problem !== undefined) {
    const tally = failed(tier.name, problem);
    report(tier.name, tally, 0, "");
    return tally;
  }
  const one = async (file: string): Promise<FileRun> => {
    if (stop.signal.aborted) return { ...failed(label(file), `not run: ${messageOf(stop.signal.reason)}`), ...unheard };
    const told = tier.labs ? progress(label(file)) : undefined;
    const timeoutMs = tier.minutesPerFile * 60_000;
    const done = await runFile(file, { timeoutMs, signal: stop.signal, testName });
    told?.done();
    const left = tier.labs ? await sweepLabs() : nothing();
    const all = { ...done, ...sum([done, left]) };
    if (all.passed + all.failed + all.skipped > 0) report(label(file), all, done.seconds, done.output);
    return all;
  };
  const tally = sum(await inOrder(files, tier.width, one));
  const ran = tally.passed + tally.failed + tally.skipped > 0;
  return ran || files.length === 0 || testName !== undefined
    ? tally
    : sum([tally, failed(tier.name, "no test ran, though there are test files")]);
}

/** A pattern that is found in the path of a file chooses files, any other one chooses tests by name. */
function choose(tiers: readonly Tier[], pattern: string | undefined) {
  const all = tiers.map((tier) => ({ tier, files: filesOf(tier) }));
  if (pattern === undefined) return { chosen: all, testName: undefined };
  const matching = all.map(({ tier, files }) => ({
    tier,
    files: files.filter((file) => label(file).toLowerCase().includes(pattern.toLowerCase())),
  }));
  const byFile = matching.some(({ files }) => files.length > 0);
  return byFile ? { chosen: matching, testName: undefined } : { chosen: all, testName: pattern };
}

/** A killed test file leaves its lab; a lab that a person keeps running is not touched. */
async function sweepLabs(): Promise<Tally> {
  const { labSweep } = (await import(join(__dirname, "..", "lab", "hosts.js"))) as { labSweep: () => Promise<unknown> };
  return labSweep().then(nothing, (error: unknown) => failed("labs that were left over", messageOf(error)));
}

async function main(tierName: string | undefined, pattern: string | undefined): Promise<Tally> {
  const tiers = TIERS.filter(({ name }) => tierName === "all" || tierName === name);
  if (tiers.length === 0) throw new UserError(`usage: npm test, or npm run test:${TIERS.map((t) => t.name).join("|")}`);
  const { chosen, testName } = choose(tiers, pattern);
  const tallies = tierName === "all" && pattern === undefined ? [await style()] : [];
  for (const { tier, files } of chosen) tallies.push(await runTier(tier, files, testName));
  const tally = sum(tallies);
  const ran = tally.passed + tally.failed + tally.skipped > 0;
  return ran ? tally : sum([tally, failed("tests", `nothing is called ${pattern ?? tierName}`)]);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => stop.abort(new UserError(`stopped by ${signal}`)));

const [, , tierName, pattern] = process.argv;
const tally = main(tierName, pattern).catch((error: unknown) => {
  const one = failed("tests", messageOf(error));
  report("tests", one, 0, "");
  return one;
});
void tally.then((all) => process.stdout.write(`${describeTally(all)}\n`, () => process.exit(all.failed > 0 ? 1 : 0)));
