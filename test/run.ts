import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import type * as Labs from "../lab/hosts.js";
import { UserError, messageOf } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { progress } from "../toolchain/progress.js";
import { type FileRun, runFile } from "./harness/file.js";
import { inOrder } from "./harness/pool.js";
import { type Tally, describeTally, nothing, sum } from "./harness/tally.js";

interface Tier {
  name: string;
  minutesPerFile: number;
  /** Its files make labs, and take long. */
  labs: boolean;
  /** Why no test of this tier can run here. */
  problem: () => string | undefined;
}

interface Job {
  tier: Tier;
  file: string;
}

const repo = join(__dirname, "..", "..");

const noHosts = () =>
  process.getuid?.() === 0 || existsSync("/var/run/docker.sock") || process.env["DOCKER_HOST"]
    ? undefined
    : "needs root, or a running Docker that this user may use: run it with sudo, or leave it out with npm run test:unit";

const TIERS: readonly Tier[] = [
  { name: "unit", minutesPerFile: 3, labs: false, problem: () => undefined },
  { name: "cluster", minutesPerFile: 40, labs: true, problem: noHosts },
  { name: "hosts", minutesPerFile: 40, labs: true, problem: noHosts },
];

/** What takes longest in its tier comes first, so that in the end no core waits for one file alone; the others come after. */
const LONGEST = [
  ...["unit/engine", "unit/preflight-look", "unit/ssh-connection", "unit/components", "unit/member", "unit/ssh-upload"],
  ...["cluster/one-and-one", "cluster/three-masters", "cluster/faults", "hosts/contract", "hosts/faults-hosts"],
  ...["cluster/killed", "hosts/faults", "hosts/steps", "hosts/lifecycle", "hosts/components"],
];

const rank = ({ file }: Job) => {
  const found = LONGEST.findIndex((name) => label(file) === `${name}.test.ts`);
  return found < 0 ? LONGEST.length : found;
};

/** Two leave a quarter of two cores idle: they wait for systemd, apt, a clock or a leader. */
const LABS_AT_ONCE = 3;

/**
 * Faults strike at random moments, and clocks, kernels and networks are real: what failed once in a run of everything
 * may be chance, and is run again, alone. Where more files fail, or one fails twice, it is not.
 */
const SECOND_TRIES = 2;

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
  const { code, stderr } = await run(process.execPath, lint, { signal: stop.signal, okCodes: [0, 1] }).catch(
    (error: unknown) => ({ code: 1, stderr: messageOf(error) }),
  );
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

async function runJob({ tier, file }: Job, testName: string | undefined): Promise<FileRun> {
  if (stop.signal.aborted) return { ...failed(label(file), `not run: ${messageOf(stop.signal.reason)}`), ...unheard };
  const told = tier.labs ? progress(label(file)) : undefined;
  const timeoutMs = tier.minutesPerFile * 60_000;
  const done = await runFile(file, { timeoutMs, signal: stop.signal, testName });
  told?.done();
  const left = tier.labs ? await sweepLabs() : nothing();
  const none = testName === undefined && !ran(done) ? failed(label(file), "it holds no test") : nothing();
  const all = { ...done, ...sum([done, left, none]) };
  if (ran(all)) report(label(file), all, done.seconds, done.output);
  return all;
}

const ran = ({ passed, failed, skipped }: Tally) => passed + failed + skipped > 0;

interface Done {
  job: Job;
  run: FileRun;
}

const firstNames = ({ job, run }: Done) => `${label(job.file)} (${run.failures.map(({ name }) => name).join(", ")})`;

/** The runs that count; what a reader has to know of the others stands last. */
async function secondTries(first: readonly Done[], most: number): Promise<FileRun[]> {
  const failed = first.filter(({ run }) => run.failed > 0);
  const chance = failed.length <= most && !stop.signal.aborted;
  const told: string[] = [];
  const runs = await inOrder(first, 1, async (one) => {
    if (!chance || !failed.includes(one)) return one.run;
    say(`${label(one.job.file)}: failed; once more, alone`);
    const second = await runJob(one.job, undefined);
    if (second.failed === 0) told.push(`passed at the second try only: ${firstNames(one)}`);
    return second;
  });
  told.forEach(say);
  return runs;
}

/** Tells of tiers that cannot run here, and runs the files of the others, so many at once. */
async function runTiers(chosen: readonly Chosen[], width: number, { testName, tries }: How): Promise<Tally> {
  const tallies: Tally[] = [];
  const jobs: Job[] = [];
  for (const { tier, files } of chosen) {
    const problem = files.length > 0 ? tier.problem() : undefined;
    if (problem === undefined) jobs.push(...files.map((file) => ({ tier, file })));
    else {
      tallies.push(failed(tier.name, problem));
      report(tier.name, failed(tier.name, problem), 0, "");
    }
  }
  const order = jobs.toSorted((one, other) => rank(one) - rank(other));
  const first = await inOrder(order, width, async (job) => ({ job, run: await runJob(job, testName) }));
  return sum([...tallies, ...(await secondTries(first, tries))]);
}

interface How {
  testName: string | undefined;
  /** So many files that failed are run again. */
  tries: number;
}

interface Chosen {
  tier: Tier;
  files: readonly string[];
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
async function sweepLabs(going?: string): Promise<Tally> {
  const { labSweep } = (await import(join(__dirname, "..", "lab", "hosts.js"))) as typeof Labs;
  return labSweep(going).then(nothing, (error: unknown) => failed("labs that were left over", messageOf(error)));
}

/** What tests write goes with it at the end. */
async function inOwnFolder(test: (folder: string) => Promise<Tally>): Promise<Tally> {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "kubexm-t-"));
  // As /tmp, for those who look whether everybody may read what is in it.
  chmodSync(folder, 0o755);
  process.env["TMPDIR"] = folder;
  return test(folder).finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
}

async function main(folder: string, tierName: string | undefined, pattern: string | undefined): Promise<Tally> {
  const tiers = TIERS.filter(({ name }) => tierName === "all" || tierName === name);
  if (tiers.length === 0) throw new UserError(`usage: npm test, or npm run test:${TIERS.map((t) => t.name).join("|")}`);
  const { chosen, testName } = choose(tiers, pattern);
  const everything = tierName === "all" && pattern === undefined;
  const quick = chosen.filter(({ tier }) => !tier.labs);
  // The longest part of the linter runs on one core, and unit tests wait half of their time.
  const tallies = await Promise.all([
    everything ? style() : nothing(),
    runTiers(quick, 2 * availableParallelism(), { testName, tries: 0 }),
  ]);
  const labs = chosen.filter(({ tier }) => tier.labs);
  tallies.push(await runTiers(labs, LABS_AT_ONCE, { testName, tries: everything ? SECOND_TRIES : 0 }));
  // One that a test started as a person does who keeps it goes with its folder.
  if (labs.some(({ files }) => files.length > 0)) tallies.push(await sweepLabs(folder));
  const tally = sum(tallies);
  return ran(tally) ? tally : sum([tally, failed("tests", `nothing is called ${pattern ?? tierName}`)]);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => stop.abort(new UserError(`stopped by ${signal}`)));

const [, , tierName, pattern] = process.argv;
const tally = inOwnFolder((folder) => main(folder, tierName, pattern)).catch((error: unknown) => {
  const one = failed("tests", messageOf(error));
  report("tests", one, 0, "");
  return one;
});
void tally.then((all) => process.stdout.write(`${describeTally(all)}\n`, () => process.exit(all.failed > 0 ? 1 : 0)));
