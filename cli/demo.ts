import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { fetchFile, sourcesFor, versionsFor, wantedFile } from "../artifacts/index.js";
import { type Lab, labClusterYaml, labDown, labUp, openLab } from "../lab/hosts.js";
import { labKubernetesFrom } from "../lab/kubernetes.js";
import { ensureBuilt, machineArch, needBuildDisk, wanted } from "../lab/mirror/build.js";
import { ensurePublished } from "../lab/mirror/images.js";
import { USUAL_PARTS } from "../lab/mirror/serve.js";
import { type BalancerService, type MirrorService, balancerService, mirrorService } from "../lab/service.js";
import { UsageError, UserError, understood } from "../toolchain/errors.js";
import { getText } from "../toolchain/http.js";
import { run } from "../toolchain/process.js";
import { showing } from "../toolchain/progress.js";
import { ensurePulumi } from "../toolchain/pulumi.js";
import { codeOf, exitWith, outliveReaders } from "./exit.js";
import { type PulumiVerb, pulumiArguments } from "./flags.js";
import { homeOf } from "./home.js";
import { clusterJob, stateJob } from "./job.js";
import { kubeconfigPath } from "./kubeconfig.js";
import { runPulumi } from "./pulumi.js";
import { clusterOf } from "./stack-config.js";

const NAME = "demo";
const MOST = 9;

/** Labs are known to the machine by name: each clone's demo has its own. */
const labName = () => `${NAME}-${createHash("sha256").update(process.cwd()).digest("hex").slice(0, 6)}`;

interface DemoArguments {
  down: boolean;
  masters: number;
  workers: number;
}

function count(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= MOST) return value;
  throw new UsageError(`npm run demo: --${flag} takes a number from ${least} to ${MOST}, not "${text}"`);
}

export function demoArguments(argv: readonly string[]): DemoArguments {
  const usage = "npm run demo [-- [--masters N] [--workers N]], npm run demo -- down";
  const options = { masters: { type: "string", default: "1" }, workers: { type: "string", default: "1" } } as const;
  const misused = (reason: string) => new UsageError(`npm run demo: ${reason}; ${usage}`);
  const { values, positionals } = understood(
    () => parseArgs({ args: [...argv], options, allowPositionals: true }),
    misused,
  );
  const [word, ...more] = positionals;
  if ((word !== undefined && word !== "up" && word !== "down") || more.length > 0)
    throw misused(`"${positionals.join(" ")}" is not understood`);
  return {
    down: word === "down",
    masters: count("masters", values.masters, 1),
    workers: count("workers", values.workers, 0),
  };
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

export function demoHosts({ masters, workers }: Pick<DemoArguments, "masters" | "workers">) {
  return { masters: numbered("m", masters), workers: numbered("w", workers) };
}

const home = () => homeOf(NAME, "cluster.yaml");
const clusterFile = () => join(home().dir, "cluster.yaml");
const labMark = () => join(home().dir, "lab-hosts");

/** The hosts' keys: new hosts with old addresses have others. */
const identity = (lab: Lab) => readFileSync(lab.knownHostsPath, "utf8");

/** A cluster of the user's own may be called the same, and its state is nothing to be tidied away. */
function refuseOwnCluster(): void {
  if (!existsSync(home().state) || existsSync(labMark())) return;
  throw new UserError(
    `${home().dir} is that of a cluster of yours, which has the demo's name: run the demo in another folder, or give the cluster another name`,
  );
}

/** The demo is of this machine alone, wherever the user keeps the state of real clusters. */
const NOT_FOR_THE_DEMO = [
  ...["PULUMI_BACKEND_URL", "PULUMI_STACK"],
  ...["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"],
];

/** A state that tells of hosts which are gone would say "no changes" of the new ones at their addresses. */
function forgetOtherLab(lab: Lab): void {
  const { dir, state, passphrase } = home();
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const before = existsSync(labMark()) ? readFileSync(labMark(), "utf8") : "";
  if (before === identity(lab)) return;
  rmSync(state, { recursive: true, force: true });
  for (const file of [passphrase, clusterFile()]) rmSync(file, { force: true });
  writeFileSync(labMark(), identity(lab), { mode: 0o600 });
}

/** Written once per lab: what a person changes in it stays. */
function writeCluster(
  { lab, mirror, balancer }: Surroundings,
  { masters, workers }: ReturnType<typeof demoHosts>,
): void {
  if (existsSync(clusterFile())) return;
  const roleGroups = { etcd: masters, master: masters, worker: workers.length > 0 ? workers : masters };
  const parts = {
    ...(mirror && labKubernetesFrom(mirror)),
    ...(balancer && {
      controlPlaneEndpoint: { externalLoadBalancer: "external", lb_address: balancer.address },
    }),
  };
  const text = labClusterYaml({ ...lab, name: NAME }, { ...parts, roleGroups, system: { ntpServers: [masters[0]] } });
  writeFileSync(clusterFile(), text, { mode: 0o600 });
}

async function apply(verb: PulumiVerb): Promise<number> {
  const job = await (verb === "destroy" ? stateJob : clusterJob)(clusterFile());
  return runPulumi(verb, pulumiArguments(verb, ["--file", clusterFile(), "--yes"]), job);
}

/** Runs until a first ^C; what is at work then takes itself back. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => stop.abort(new Error(signal));
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    return await work(stop.signal);
  } catch (error) {
    throw stop.signal.aborted ? (stop.signal.reason as Error) : error;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

const startLab = (hosts: readonly string[], signal: AbortSignal): Promise<Lab> =>
  showing(`Lab hosts ${hosts.join(", ")}`, () => labUp({ name: labName(), hosts, signal }), "up");

const UPSTREAM = "https://dl.k8s.io/release/stable.txt";
const UPSTREAM_PATIENCE_MS = 5000;

/** Where upstream cannot be reached, a mirror of what was built here stands for it. */
const upstreamAnswers = () =>
  getText(UPSTREAM, { answerTimeoutMs: UPSTREAM_PATIENCE_MS }).then(
    () => true,
    () => false,
  );

interface Surroundings {
  lab: Lab;
  mirror?: MirrorService;
  balancer?: BalancerService;
}

/** Several masters need somebody before them who knows which of them lives. */
async function serve(lab: Lab, masters: number, built: boolean, signal: AbortSignal): Promise<Surroundings> {
  return {
    lab,
    ...(built && { mirror: await mirrorService(lab, signal) }),
    ...(masters > 1 && {
      balancer: await balancerService(
        lab,
        lab.hosts.slice(0, masters).map(({ address }) => address),
        signal,
      ),
    }),
  };
}

const buildParts = () =>
  showing(
    "Parts of the cluster (upstream cannot be reached: from the Go module proxy)",
    async () => {
      const wants = USUAL_PARTS.map((part) => wanted(part));
      // The mirror needs it first of all, and shows nobody how long it takes.
      const registry = wanted("registry");
      await needBuildDisk([registry, ...wants]);
      await Promise.all([ensureBuilt(registry), ...wants.map(ensurePublished)]);
    },
    "ready",
  );

/** All that is needed, at once. What fails first is told without waiting for a long build, and then no lab stays. */
function prepare({ masters, workers }: ReturnType<typeof demoHosts>): Promise<Surroundings> {
  return interruptible(async (signal) => {
    const failed = new AbortController();
    const parts = upstreamAnswers().then(async (answers) => (answers ? "upstream" : (await buildParts(), "built")));
    const builds = Promise.all([ensurePulumi(), parts]);
    builds.catch(() => failed.abort());
    const starting = startLab([...masters, ...workers], AbortSignal.any([signal, failed.signal]));
    const lab = await starting.catch(async (error: unknown) => {
      if (failed.signal.aborted) await builds;
      throw error;
    });
    try {
      const [, from] = await builds;
      return await serve(lab, masters.length, from === "built", signal);
    } catch (error) {
      await labDown(labName());
      throw error;
    }
  });
}

/** kubectl of the cluster's own version, by the address and certificate that any user gets. */
async function showCluster(): Promise<void> {
  const { spec } = await clusterOf(clusterFile());
  const id = { name: "kubectl", version: versionsFor(spec).kubernetes, arch: machineArch() } as const;
  const file = wantedFile(id, await sourcesFor(spec, [id]));
  await fetchFile(file, () => undefined);
  const kubectl = join(home().dir, file.place);
  const flags = ["--kubeconfig", kubeconfigPath(home())];
  // The cluster is made; what comes with it still starts.
  await run(kubectl, [...flags, "wait", "pods", "--all", "-A", "--for=condition=Ready", "--timeout=60s"], {
    okCodes: [0, 1],
  });
  const { stdout } = await run(kubectl, [...flags, "get", "nodes,pods", "-A"]);
  console.log(`\n$ kubectl get nodes,pods -A\n${stdout.trimEnd()}`);
}

function describe(lab: Lab): string {
  const file = relative(process.cwd(), clusterFile());
  const path = (path: string) => relative(process.cwd(), path);
  return [
    "",
    `running: ${lab.hosts.map(({ name, address }) => `${name} (${address})`).join(", ")}; the lab is in ${path(lab.dir)}`,
    `state:   ${path(home().state)} (Pulumi, encrypted with ${path(home().passphrase)})`,
    `cluster: export KUBECONFIG=${kubeconfigPath(home())}`,
    `log in:  ssh -F ${path(lab.sshConfig)} ${lab.hosts[0]?.name ?? ""}`,
    `change:  edit ${file}`,
    `preview: npx kubexm preview -f ${file}`,
    `apply:   npx kubexm up -f ${file}             (with --refresh: heals what was changed on the hosts)`,
    `destroy: npx kubexm destroy -f ${file}        (the hosts stay, as they were before)`,
    "the end: npm run demo -- down",
  ].join("\n");
}

async function up(args: DemoArguments): Promise<number> {
  refuseOwnCluster();
  const hosts = demoHosts(args);
  const surroundings = await prepare(hosts);
  const { lab } = surroundings;
  forgetOtherLab(lab);
  writeCluster(surroundings, hosts);
  const code = await apply("up");
  if (code !== 0) return code;
  await showCluster();
  console.log(describe(lab));
  return code;
}

/** The hosts go with the lab in any case: that they could not be given back first is told, and no reason to keep them. */
async function down(): Promise<number> {
  const lab = await openLab(labName());
  const ours = existsSync(labMark());
  const destroyed = lab && ours && existsSync(clusterFile()) ? await codeOf(() => apply("destroy")) : 0;
  const known = await interruptible(() => labDown(labName()));
  if (ours) rmSync(home().dir, { recursive: true, force: true });
  if (destroyed !== 0)
    console.log("what could not be given back has gone with its host: there is nothing to be mended");
  console.log(known || lab ? "the demo is gone: lab, state and files" : "there is no demo");
  return destroyed;
}

async function demo(argv: readonly string[]): Promise<number> {
  const args = demoArguments(argv);
  for (const name of NOT_FOR_THE_DEMO) Reflect.deleteProperty(process.env, name);
  return args.down ? down() : up(args);
}

if (require.main === module) {
  outliveReaders();
  void codeOf(() => demo(process.argv.slice(2))).then(exitWith);
}
