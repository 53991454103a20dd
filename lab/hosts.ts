import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../toolchain/errors.js";
import {
  type Docker,
  GIVEN,
  LAB_LABEL,
  OWN,
  OWNER_LABEL,
  docker,
  ensureDocker,
  releaseDocker,
  runningDockers,
  sweepDaemon,
} from "./docker.js";
import {
  type Lab,
  type LabRecord,
  labClusterYaml,
  labDir,
  labFiles,
  nameServersOf,
  readRecord,
  sshConfig,
} from "./files.js";
import { makeSshKey } from "./key.js";
import { hostReady, startPlanned } from "./host.js";
import { ensureImage } from "./image.js";
import { DIR_LABEL, type FoundLab, containersOf, foundLabs, removeAndRelease, removeLeftOvers } from "./labs.js";
import { withLock } from "./lock.js";
import { CLUSTER_RANGES, type LabNetwork, createNetworks, openNetworks } from "./network.js";
import { owner } from "../toolchain/owner.js";
import {
  BASTION,
  type LabHost,
  type LabOptions,
  anyLabName,
  checkLabName,
  planHosts,
  planLab,
  planNetworks,
} from "./plan.js";

export { labExec, restartHost, startHost, stopHost } from "./host.js";
export { labClusterYaml } from "./files.js";
export { anyLabName } from "./plan.js";
export type { Lab } from "./files.js";
export type { LabHost, LabOptions } from "./plan.js";

const LOCK = "labs";
export const DEFAULT_NAME = "lab";

/** What decides whether a lab that is there is the one that is asked for. */
function askedFor(options: LabOptions): string {
  const { bastion, secondInterface, packages, withPython, ranges } = options;
  return JSON.stringify({ hosts: planHosts(options), bastion, secondInterface, packages, withPython, ranges });
}

interface Claim {
  docker: Docker;
  networks: LabNetwork[];
  labels: string[];
}

/** The lab that is there already, or the claim to make one: its networks. */
async function claim(name: string, dir: string, options: LabOptions): Promise<Lab | Claim> {
  const d = await ensureDocker();
  try {
    await removeLeftOvers(d);
    const there = (await foundLabs(d)).find((lab) => lab.name === name);
    if (there) return await reuse(there, dir, options);
    const labels = [`${LAB_LABEL}=${name}`, `${DIR_LABEL}=${dir}`, `${OWNER_LABEL}=${owner()}`];
    return {
      docker: d,
      networks: await createNetworks(d, planNetworks(options, name), labels, options.ranges),
      labels,
    };
  } catch (error) {
    await releaseDocker(d);
    throw error;
  }
}

async function reuse(there: FoundLab, dir: string, options: LabOptions): Promise<Lab> {
  const { name } = there;
  if (there.dir !== dir)
    throw new UserError(`a lab ${name} runs already, of ${there.dir}: choose another name, or take that one down`);
  const record = await readRecord(dir);
  if (record?.state !== "up") throw new UserError(`lab ${name} is just being started by another process`);
  if (record.asked !== askedFor(options))
    throw new UserError(
      `a lab ${name} runs already with other options: take it down first (kubexm lab down --name ${name})`,
    );
  const { hosts, bastion } = record.lab;
  const running = await containersOf(there, true);
  const stopped = [...hosts, ...(bastion ? [bastion] : [])].find(({ container }) => !running.includes(container));
  if (stopped) throw new UserError(`lab ${name}: ${stopped.name} is stopped: take the lab down and start it again`);
  return record.lab;
}

async function writeKey(path: string): Promise<string> {
  const { privateKey, publicKey } = makeSshKey("kubexm-lab");
  await writeFile(path, privateKey, { mode: 0o600 });
  await writeFile(`${path}.pub`, `${publicKey}\n`);
  return publicKey;
}

async function machineNameServers(): Promise<string[]> {
  const paths = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
  return nameServersOf(...(await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")))));
}

async function writeRecord(record: LabRecord): Promise<void> {
  await writeFile(join(record.lab.dir, "lab.json"), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
}

async function build(
  name: string,
  dir: string,
  options: LabOptions,
  { docker: d, networks, labels }: Claim,
): Promise<Lab> {
  const { signal, keep = true } = options;
  const image = await ensureImage(d, options);
  signal?.throwIfAborted();
  const files = labFiles(name, dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const publicKey = await writeKey(files.privateKeyPath);
  const plan = planLab(options, { name, privateKeyPath: files.privateKeyPath, ownDocker: d.own }, networks);
  const all = plan.map(({ host }) => host);
  const bastion = options.bastion ? all.find((host) => host.name === BASTION) : undefined;
  const lab: Lab = { ...files, hosts: all.filter((host) => host !== bastion), ...(bastion && { bastion }) };
  const asked = askedFor(options);
  await writeRecord({ state: "starting", keep, asked, lab });
  await openNetworks(d, image, networks, options.ranges ?? CLUSTER_RANGES);

  const making = { image, labels, publicKey, nameServers: await machineNameServers() };
  const keys = await allOf(
    plan.map(async (planned) => {
      await startPlanned(planned, making);
      signal?.throwIfAborted();
      const { host } = planned;
      return `${host.address} ${await hostReady(host, options.bastion !== "only" || host === bastion)}\n`;
    }),
  );
  await writeFile(lab.knownHostsPath, keys.join(""));
  await writeFile(lab.clusterYaml, labClusterYaml(lab), { mode: 0o600 });
  await writeFile(lab.sshConfig, sshConfig(lab));
  await writeRecord({ state: "up", keep, asked, lab });
  return lab;
}

/** Like Promise.all, but nothing is still at work when it fails. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

/** Starts a lab, or finds the one that was started with the same options. A lab that cannot be started leaves nothing. */
export async function labUp(options: LabOptions = {}): Promise<Lab> {
  const name = checkLabName(options.name ?? DEFAULT_NAME);
  planHosts(options);
  const dir = labDir(name, options.cwd);
  const claimed = await withLock(LOCK, () => claim(name, dir, options), options.signal);
  if ("dir" in claimed) return claimed;
  try {
    return await build(name, dir, options, claimed);
  } catch (error) {
    await withLock(LOCK, () => removeAndRelease({ docker: claimed.docker, name, dir, owner: owner() }));
    throw error;
  }
}

async function everyLab(): Promise<FoundLab[]> {
  return (await Promise.all((await runningDockers()).map(foundLabs))).flat();
}

/** Takes a lab down with all that belongs to it; false: there was none. */
export function labDown(name: string, cwd?: string): Promise<boolean> {
  const dir = labDir(name, cwd);
  return withLock(LOCK, async () => {
    for (const d of await runningDockers()) await removeLeftOvers(d);
    await sweepDaemon();
    const lab = (await everyLab()).find((found) => found.name === name);
    if (lab && lab.dir !== dir)
      throw new UserError(`lab ${name} belongs to ${lab.dir}: take it down there, or use --all`);
    const known = lab !== undefined || (await readRecord(dir)) !== undefined;
    if (lab) await removeAndRelease(lab);
    await rm(dir, { recursive: true, force: true });
    return known;
  });
}

/** Takes down every lab of this machine, and gives their names. */
export function labDownAll(): Promise<string[]> {
  return withLock(LOCK, async () => {
    const labs = await everyLab();
    for (const lab of labs) await removeAndRelease(lab);
    await sweepDaemon();
    return labs.map(({ name }) => name);
  });
}

/** Removes what killed runs left, and only that; below a folder that is about to go, labs that were to be kept, too. */
export function labSweep(going?: string): Promise<void> {
  return withLock(LOCK, async () => {
    for (const d of await runningDockers()) {
      await removeLeftOvers(d, going);
      await releaseDocker(d);
    }
    await sweepDaemon();
  });
}

export interface HostStatus {
  host: LabHost;
  state: string;
}

export interface LabStatus {
  lab: Lab;
  hosts: HostStatus[];
}

/** The lab as it is; undefined: there is none. */
export async function labStatus(name: string = DEFAULT_NAME, cwd?: string): Promise<LabStatus | undefined> {
  const lab = await openLab(name, cwd);
  if (!lab) return undefined;
  const all = [...lab.hosts, ...(lab.bastion ? [lab.bastion] : [])];
  const state = ({ ownDocker, container }: LabHost) =>
    docker(ownDocker ? OWN : GIVEN, ["inspect", "--format", "{{.State.Status}}", container]).catch(() => "gone");
  return { lab, hosts: await Promise.all(all.map(async (host) => ({ host, state: await state(host) }))) };
}

/** A lab that is up, read from its folder. */
export async function openLab(name: string = DEFAULT_NAME, cwd?: string): Promise<Lab | undefined> {
  const record = await readRecord(labDir(checkLabName(name), cwd));
  return record?.state === "up" ? record.lab : undefined;
}

/** A lab for the time of `use`: it ends with it, and at the latest at the next lab command if this process is killed. */
export async function withLab<T>(options: LabOptions, use: (lab: Lab) => Promise<T>): Promise<T> {
  const name = options.name ?? anyLabName();
  const lab = await labUp({ ...options, name, keep: false });
  try {
    return await use(lab);
  } finally {
    await labDown(name, options.cwd);
  }
}
