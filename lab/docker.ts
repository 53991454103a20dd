import { alive } from "../toolchain/owner.js";
import { UserError } from "../toolchain/errors.js";
import { type RunOptions, run } from "../toolchain/process.js";
import { needPackages } from "./apt.js";
import { OWN_SOCKET, startDaemon, stopDaemon } from "./daemon.js";

export const LAB_LABEL = "kubexm.lab";
export const OWNER_LABEL = "kubexm.lab.owner";

/** A Docker that answers. `own` is the one that only labs use; any other is somebody else's and is never stopped. */
export interface Docker {
  own: boolean;
  env: Record<string, string | undefined>;
}

export const OWN: Docker = { own: true, env: { DOCKER_HOST: OWN_SOCKET, DOCKER_CONTEXT: undefined } };
export const GIVEN: Docker = { own: false, env: {} };

export async function docker(d: Docker, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { stdout } = await run("docker", args, { ...options, env: { ...d.env, ...options.env } });
  return stdout.trim();
}

/** The non-empty lines of what a docker command prints. */
export async function dockerLines(d: Docker, args: readonly string[]): Promise<string[]> {
  return (await docker(d, args)).split("\n").filter((line) => line !== "");
}

/** A Docker that is gone refuses at once; one on a busy machine takes its time. */
const ANSWER_SECONDS = 60;

async function answers(d: Docker): Promise<boolean> {
  return docker(d, ["version", "--format", "{{.Server.Version}}"], { timeoutMs: ANSWER_SECONDS * 1000 }).then(
    (version) => version !== "",
    () => false,
  );
}

/** Every Docker that may hold labs of ours. */
export async function runningDockers(): Promise<Docker[]> {
  const found = await Promise.all([GIVEN, OWN].map(answers));
  const dockers = [GIVEN, OWN].filter((_, i) => found[i]);
  // DOCKER_HOST may name our own.
  return process.env["DOCKER_HOST"] === OWN_SOCKET ? dockers.filter((d) => d.own) : dockers;
}

export const isRoot = () => process.getuid?.() === 0;

/** Commands that the lab calls on this machine, and the Debian package of each. */
const NEEDED: Record<string, string> = {
  dockerd: "docker.io",
  docker: "docker.io",
  ip: "iproute2",
  nft: "nftables",
};

const onPath = (command: string) =>
  run("sh", ["-c", 'command -v "$1"', "sh", command], { okCodes: [0, 1, 127] }).then(({ code }) => code === 0);

async function lacking(needed: Record<string, string>): Promise<string[]> {
  const present = await Promise.all(Object.keys(needed).map(onPath));
  return [...new Set(Object.values(needed).filter((_, i) => !present[i]))];
}

/** Installs by apt, as root, the packages of the commands that are not there. */
export const needCommands = (needed: Record<string, string>, what: string): Promise<void> =>
  needPackages({
    what,
    missing: () => lacking(needed),
    hasApt: () => onPath("apt-get"),
    advice: "install Docker and start it yourself",
  });

/** The Docker that answers already, else our own, started. Call it under the lab lock. */
export async function ensureDocker(): Promise<Docker> {
  const { DOCKER_HOST } = process.env;
  const running = await runningDockers();
  // A Docker that was asked for by name is not replaced by another.
  const [found] = DOCKER_HOST && DOCKER_HOST !== OWN_SOCKET ? running.filter(({ own }) => !own) : running;
  if (found) return found;
  if (DOCKER_HOST)
    throw new UserError(`no Docker answers at DOCKER_HOST=${DOCKER_HOST}: start it, or unset DOCKER_HOST`);
  if (process.platform !== "linux")
    throw new UserError("no Docker is running: start it (a lab can start its own only on Linux)");
  if (!isRoot()) throw new UserError("no Docker is running: start it, or run as root and the lab starts its own");
  await needCommands(NEEDED, "a lab without a running Docker");
  await startDaemon();
  if (await answers(OWN)) return OWN;
  await stopDaemon();
  throw new UserError("the lab's own Docker does not answer: try again, or start a Docker yourself");
}

/** Stops our own Docker when no lab is left on it. Call it under the lab lock. */
export async function releaseDocker(d: Docker): Promise<void> {
  if (!d.own || !(await answers(d))) return;
  const labelled = ["--filter", `label=${LAB_LABEL}`, "--format", `{{.Label "${OWNER_LABEL}"}}`];
  const hosts = await dockerLines(d, ["ps", "--all", ...labelled]);
  // A network without hosts is a lab that is just being made, or one that Docker will not let go until its own end.
  const makers = await dockerLines(d, ["network", "ls", ...labelled]);
  if (hosts.length === 0 && !makers.some(alive)) await stopDaemon();
}

/** Removes what a killed Docker of ours left. Call it under the lab lock. */
export async function sweepDaemon(): Promise<void> {
  if (isRoot() && !(await answers(OWN))) await stopDaemon();
}
