import { existsSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../toolchain/errors.js";
import { type RunOptions, type RunResult, run } from "../toolchain/process.js";
import { type Docker, OWN, GIVEN, docker } from "./docker.js";
import { entryScript } from "./entry.js";
import type { LabHost, PlannedHost } from "./plan.js";

export type { LabHost };

/** What systemd and Kubernetes need of `--privileged`, which itself asks for more than some machines may give. */
const CAPABILITIES = [
  ...["SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "SYS_CHROOT", "MKNOD", "SYS_BOOT", "SYS_NICE", "SYS_TIME"],
  ...["SYSLOG", "IPC_LOCK", "LINUX_IMMUTABLE", "DAC_READ_SEARCH", "AUDIT_CONTROL"],
];
const SECURITY = ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"];
const DEVICES = ["/dev/kmsg", "/dev/fuse"];
const BOOT_SECONDS = 120;
const STOP_SECONDS = 10;

const dockerOf = (host: LabHost): Docker => (host.ownDocker ? OWN : GIVEN);

export interface HostMaking {
  image: string;
  labels: readonly string[];
  publicKey: string;
  nameServers: readonly string[];
}

export async function startPlanned({ host, options, networks }: PlannedHost, making: HostMaking): Promise<void> {
  const d = dockerOf(host);
  const [first, ...others] = networks;
  if (!first) throw new Error(`${host.name}: no network`);
  const secret = host.password ?? host.sudoPassword;
  const entry = entryScript({
    ...options,
    name: host.name,
    publicKey: making.publicKey,
    nameServers: making.nameServers,
    ...(secret !== undefined && { password: secret }),
  });
  const { memory, tmpfs = {} } = options;
  await docker(d, [
    ...["create", "--name", host.container, "--hostname", host.name, "--network", first.name, "--ip", first.address],
    ...making.labels.flatMap((label) => ["--label", label]),
    ...CAPABILITIES.map((name) => `--cap-add=${name}`),
    ...SECURITY.map((option) => `--security-opt=${option}`),
    ...DEVICES.filter((path) => existsSync(path)).map((path) => `--device=${path}`),
    ...["--cgroupns=private", "--device-cgroup-rule=a *:* rwm", "--stop-signal=SIGRTMIN+3", "--pids-limit=-1"],
    // No overlay on overlay: what containers and etcd write is on the machine's own file system.
    ...["--tmpfs", "/run", "--volume", "/var"],
    ...Object.entries(tmpfs).flatMap(([path, size]) => ["--tmpfs", `${path}:exec,size=${size}`]),
    ...(memory === undefined ? [] : [`--memory=${memory}`, `--memory-swap=${memory}`]),
    ...[making.image, "/bin/sh", "-c", entry],
  ]);
  for (const { name, address } of others)
    await docker(d, ["network", "connect", "--ip", address, name, host.container]);
  await docker(d, ["start", host.container]);
}

/** Waits for the end of booting, and says what systemd then thinks of itself. */
const BOOTED = `
end=$(($(date +%s) + ${BOOT_SECONDS}))
while [ "$(date +%s)" -lt $end ]; do
  state=$(timeout ${BOOT_SECONDS} systemctl is-system-running --wait 2>/dev/null)
  case $state in running | degraded) systemctl is-active --quiet ssh && break ;; esac
  sleep 0.1
done
systemctl is-active --quiet ssh || { systemctl list-jobs --no-legend; systemctl --failed --no-legend; exit 1; } >&2
cat /etc/ssh/ssh_host_ed25519_key.pub
`;

function banner(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: 1000 });
    const end = (ok: boolean) => {
      socket.destroy();
      resolve(ok);
    };
    socket.once("data", (data) => end(data.toString().startsWith("SSH-")));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("close", () => end(false));
  });
}

async function reachable(host: LabHost): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if (await banner(host.address, host.port)) return;
    await sleep(100);
  }
  throw new UserError(
    `${host.name}: ${host.address}:${host.port} cannot be reached from here: a lab needs a Docker whose networks are on this machine (no remote one, no Docker Desktop)`,
  );
}

/** Waits until the host has booted and sshd answers; gives its public host key. */
export async function hostReady(host: LabHost, direct: boolean): Promise<string> {
  const { stdout } = await labExec(host, BOOTED).catch((error: unknown) => {
    throw new UserError(`lab host ${host.name} does not boot: see docker logs ${host.container}`, { cause: error });
  });
  if (direct) await reachable(host);
  return stdout.trim().split(" ").slice(0, 2).join(" ");
}

/** Runs a script on a host as root without SSH: what a test uses to look behind the product's back. */
export function labExec(host: LabHost, script: string, options: RunOptions = {}): Promise<RunResult> {
  const stdin = options.input === undefined ? [] : ["--interactive"];
  return run("docker", ["exec", ...stdin, host.container, "/bin/sh", "-c", script], {
    ...options,
    env: { ...dockerOf(host).env, ...options.env },
  });
}

const direct = (host: LabHost) => host.bastion === undefined;

/** Reboots a host; it keeps its files, keys and addresses. */
export async function restartHost(host: LabHost): Promise<void> {
  await docker(dockerOf(host), ["restart", "--time", String(STOP_SECONDS), host.container]);
  await hostReady(host, direct(host));
}

/** `hard`: as if its plug were pulled. */
export async function stopHost(host: LabHost, hard = false): Promise<void> {
  await docker(
    dockerOf(host),
    hard ? ["kill", host.container] : ["stop", "--time", String(STOP_SECONDS), host.container],
  );
}

export async function startHost(host: LabHost): Promise<void> {
  await docker(dockerOf(host), ["start", host.container]);
  await hostReady(host, direct(host));
}
