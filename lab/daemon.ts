import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, readdirSync } from "node:fs";
import { access, mkdir, readFile, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cacheDir } from "../toolchain/cache.js";
import { UserError } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { bridgeBack } from "./links.js";

/** Everything of our own Docker that must not outlive it; its images live in the cache. */
const RUN_DIR = "/run/kubexm-lab";
const CONTAINERD_SOCKET = join(RUN_DIR, "containerd.sock");
/** Names of the bridges that labs made on it. */
const LINKS = join(RUN_DIR, "links");
/** Where its data is: another user or another KUBEXM_CACHE may be the one that clears up. */
const DATA_ROOT = join(RUN_DIR, "data-root");
const CGROUP = "kubexm-lab";
const FORWARDING = "/proc/sys/net/ipv4/ip_forward";
/** systemd, journald and dbus of every host take some eight of them, all of one user: 128 are gone with a dozen hosts. */
const INOTIFY = { name: "fs/inotify/max_user_instances", least: 8192 };
/** What hosts share with their machine, and what it is set to for them, or by their kubelets. */
const SHARED: Readonly<Record<string, string>> = {
  [INOTIFY.name]: String(INOTIFY.least),
  "kernel/keys/root_maxbytes": "25000000",
  "kernel/keys/root_maxkeys": "1000000",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
};
/** What Docker and containerd make outside the folders they are given; inner ones first. */
const STRAYS = ["/run/containerd", "/run/docker", "/etc/docker/key.json", "/etc/docker"] as const;
/** Sockets of other daemons, that may have started since and share those places. */
const OTHERS = ["/run/containerd/containerd.sock", "/run/docker.sock"] as const;
export const OWN_SOCKET = `unix://${RUN_DIR}/docker.sock`;

const START_SECONDS = 60;
const STOP_SECONDS = 20;

const dataDir = () => join(cacheDir(), "lab-docker");
const logPath = () => join(dataDir(), "dockerd.log");

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function waitFor(ready: () => boolean | Promise<boolean>, seconds: number): Promise<boolean> {
  const end = Date.now() + seconds * 1000;
  while (!(await ready())) {
    if (Date.now() > end) return false;
    await sleep(50);
  }
  return true;
}

function config() {
  return {
    "data-root": join(dataDir(), "docker"),
    "exec-root": join(RUN_DIR, "docker"),
    pidfile: join(RUN_DIR, "docker.pid"),
    hosts: [OWN_SOCKET],
    containerd: CONTAINERD_SOCKET,
    "cgroup-parent": `/${CGROUP}`,
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
    // Firewall, forwarding and bridges are the lab's own work (network.ts), so that they can be taken back to the last rule.
    bridge: "none",
    iptables: false,
    ip6tables: false,
    "ip-forward": false,
    "ip-masq": false,
    "userland-proxy": false,
    "shutdown-timeout": 5,
    "log-level": "warn",
  };
}

function containerdConfig(): string {
  return [
    "version = 2",
    `root = "${join(dataDir(), "containerd")}"`,
    `state = "${join(RUN_DIR, "containerd")}"`,
    'disabled_plugins = ["io.containerd.grpc.v1.cri"]',
    "[grpc]",
    `  address = "${CONTAINERD_SOCKET}"`,
    "",
  ].join("\n");
}

/** A process of its own, that goes on when this one ends. */
function launch(command: string, args: readonly string[], log: number): () => boolean {
  const env = { ...process.env };
  // It may be a folder that goes with this process, or with the run of tests that this is.
  delete env["TMPDIR"];
  const child = spawn(command, args, { cwd: "/", detached: true, stdio: ["ignore", log, log], env });
  let failed = false;
  child.once("error", () => (failed = true));
  child.unref();
  return () => failed || child.exitCode !== null;
}

async function startFailure(program: string): Promise<UserError> {
  const said = (await readFile(logPath(), "utf8").catch(() => "")).trimEnd().split("\n").slice(-5).join("\n  ");
  return new UserError(
    `the lab's own ${program} does not start: start a Docker yourself, or see ${logPath()}\n  ${said}`,
  );
}

async function startOne(program: string, args: readonly string[], socket: string): Promise<void> {
  const log = openSync(logPath(), "a");
  try {
    const ended = launch(program, args, log);
    const up = await waitFor(() => ended() || existsSync(socket), START_SECONDS);
    if (up && !ended()) return;
    throw await startFailure(program);
  } finally {
    closeSync(log);
  }
}

/** Starts our own Docker. What a killed one left is removed first. */
export async function startDaemon(): Promise<void> {
  await stopDaemon();
  await mkdir(RUN_DIR, { recursive: true, mode: 0o711 });
  await mkdir(LINKS, { recursive: true });
  await mkdir(dataDir(), { recursive: true });
  await writeFile(DATA_ROOT, dataDir());
  await rm(logPath(), { force: true });
  await writeFile(join(RUN_DIR, "ip_forward"), await readFile(FORWARDING, "utf8"));
  await writeFile(join(RUN_DIR, "shared.json"), JSON.stringify(await readShared()));
  const absent = STRAYS.filter((path) => !existsSync(path));
  await writeFile(join(RUN_DIR, "absent"), absent.join("\n"));
  await writeFile(join(RUN_DIR, "containerd.toml"), containerdConfig());
  await writeFile(join(RUN_DIR, "daemon.json"), JSON.stringify(config(), null, 2));
  try {
    await startOne("containerd", ["--config", join(RUN_DIR, "containerd.toml")], CONTAINERD_SOCKET);
    await startOne("dockerd", ["--config-file", join(RUN_DIR, "daemon.json")], join(RUN_DIR, "docker.sock"));
    await writeFile(FORWARDING, "1");
    await makeRoom();
  } catch (error) {
    await stopDaemon();
    throw error;
  }
}

/** Ours are the processes that name our run folder as an argument: daemons, shims and proxies. */
function processes(programs: RegExp): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const [command = "", ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return programs.test(command) && args.some((arg) => arg.startsWith(`${RUN_DIR}/`));
      } catch {
        return false;
      }
    })
    .map(Number);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone in between.
  }
}

async function end(programs: RegExp, signal: NodeJS.Signals): Promise<boolean> {
  const signalAll = (name: NodeJS.Signals) => {
    for (const pid of processes(programs)) kill(pid, name);
  };
  signalAll(signal);
  const gone = () => processes(programs).length === 0;
  if (await waitFor(gone, STOP_SECONDS)) return true;
  signalAll("SIGKILL");
  return waitFor(gone, STOP_SECONDS);
}

/** Places that something is mounted on below these folders, inner ones first, by the text of /proc/self/mounts. */
export function mountsBelow(mounts: string, roots: readonly string[]): string[] {
  return mounts
    .split("\n")
    .map((line) =>
      (line.split(" ")[1] ?? "").replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(parseInt(code, 8))),
    )
    .filter((place) => roots.some((root) => place.startsWith(`${root}/`)))
    .reverse();
}

async function unmountAll(): Promise<void> {
  const data = await readFile(DATA_ROOT, "utf8").catch(dataDir);
  for (const place of mountsBelow(await readFile("/proc/self/mounts", "utf8"), [RUN_DIR, data]))
    await run("umount", ["-l", place], { okCodes: [0, 1, 32] });
}

/** The folders of our containers' cgroups, inner ones first, in every hierarchy. */
async function cgroups(): Promise<string[]> {
  const top = "/sys/fs/cgroup";
  const inside = async (path: string): Promise<string[]> => {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
    if (!entries) return [];
    const inner = entries.filter((e) => e.isDirectory()).map((e) => inside(join(path, e.name)));
    return [...(await Promise.all(inner)).flat(), path];
  };
  const hierarchies = [top, ...(await readdir(top).catch(() => [])).map((name) => join(top, name))];
  return (await Promise.all(hierarchies.map((path) => inside(join(path, CGROUP))))).flat();
}

/** Containers outlive a killed dockerd: what is left is found by its cgroup. */
async function endContainers(): Promise<void> {
  const inside = async () => {
    const lists = (await cgroups()).map((path) => readFile(join(path, "cgroup.procs"), "utf8").catch(() => ""));
    return [...new Set((await Promise.all(lists)).join("\n").split("\n").map(Number))].filter((pid) => pid > 0);
  };
  await waitFor(async () => {
    const pids = await inside();
    for (const pid of pids) kill(pid, "SIGKILL");
    return pids.length === 0;
  }, STOP_SECONDS);
}

async function removeCgroups(): Promise<void> {
  for (const path of await cgroups()) await rmdir(path).catch(() => undefined);
}

/** Call it before the bridge is made, so that the end of this Docker takes the bridge with it, and no bridge of another Docker. */
export async function noteLink(bridge: string): Promise<void> {
  await mkdir(LINKS, { recursive: true });
  await writeFile(join(LINKS, bridge), "");
}

async function removeNetworking(): Promise<void> {
  const links = await readdir(LINKS).catch(() => []);
  if (links.length > 0) await run("sh", ["-c", links.flatMap(bridgeBack).join("\n")]);
}

/** Where this may not be written, as in some containers, a small lab still works. */
async function makeRoom(): Promise<void> {
  const path = sharedPath(INOTIFY.name);
  if (Number(await readFile(path, "utf8")) < INOTIFY.least)
    await writeFile(path, String(INOTIFY.least)).catch(() => undefined);
}

type Settings = Readonly<Record<string, string>>;

const sharedPath = (name: string) => `/proc/sys/${name}`;

/** A kernel need not have all of them. */
async function readShared(): Promise<Settings> {
  const value = (name: string) => readFile(sharedPath(name), "utf8").catch(() => "");
  const rows = await Promise.all(Object.keys(SHARED).map(async (name) => [name, (await value(name)).trim()] as const));
  return Object.fromEntries(rows);
}

/** What goes back to what it was; what somebody else set meanwhile stays. */
export const sharedAfter = (before: Settings, now: Settings): (readonly [name: string, value: string])[] =>
  Object.entries(before).filter(([name, was]) => was !== "" && now[name] !== was && now[name] === SHARED[name]);

async function giveSharedBack(): Promise<void> {
  const before = await readFile(join(RUN_DIR, "shared.json"), "utf8").catch(() => "{}");
  for (const [name, value] of sharedAfter(JSON.parse(before) as Settings, await readShared()))
    await writeFile(sharedPath(name), value);
}

/** What `ip_forward` is set to at the end. A daemon that has come meanwhile found it on, and counts on it. */
export const forwardingAfter = (before: string, others: boolean) =>
  before.trim() === "0" && !others ? "0" : undefined;

async function giveBack(): Promise<void> {
  await giveSharedBack();
  const others = OTHERS.some((socket) => existsSync(socket));
  const forwarding = forwardingAfter(await readFile(join(RUN_DIR, "ip_forward"), "utf8").catch(() => ""), others);
  if (forwarding !== undefined) await writeFile(FORWARDING, forwarding);
  const absent = (await readFile(join(RUN_DIR, "absent"), "utf8").catch(() => "")).split("\n");
  if (others) return;
  for (const path of STRAYS.filter((stray) => absent.includes(stray))) await rm(path, { recursive: true, force: true });
}

/** Ends our own Docker, dead or alive, with all that it left on the machine. Its images stay in the cache. */
export async function stopDaemon(): Promise<void> {
  if (!(await exists(RUN_DIR))) return;
  await end(/(^|\/)dockerd$/, "SIGTERM");
  await end(/(^|\/)containerd$/, "SIGTERM");
  await endContainers();
  await end(/(^|\/)(containerd-shim[-\w]*|runc)$/, "SIGKILL");
  await unmountAll();
  await removeCgroups();
  await removeNetworking();
  await giveBack();
  await rm(RUN_DIR, { recursive: true, force: true });
}
