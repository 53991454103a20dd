import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { needDisk, once, scratch } from "../toolchain/cache.js";
import { UserError, messageOf } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { type Progress, progress } from "../toolchain/progress.js";
import { type Docker, docker, dockerLines, isRoot, needCommands } from "./docker.js";
import { withLock } from "./lock.js";
import { owner } from "../toolchain/owner.js";

const SUITE = "bookworm"; // systemd 252: newer ones refuse the cgroup version 1 that some machines still have.
const REPOSITORY = "kubexm-lab";
const IMAGE_LABEL = "kubexm.lab.image";
/** Containers that build an image; the name goes on with their owner. */
export const BUILD_PREFIX = "kubexm-lab-build-";
const DISK = 6 * 2 ** 30;
const PULL_SECONDS = 120;
/** Package indexes older than this name packages that the archive no longer has. */
const FRESH_DAYS = 14;

/** What a small Debian server has, and what kubeadm's preflight looks for. */
export const PACKAGES = [
  ...["systemd", "systemd-sysv", "dbus", "udev", "openssh-server", "sudo", "ca-certificates", "procps", "kmod"],
  ...["iproute2", "iputils-ping", "nftables", "iptables", "ethtool", "conntrack", "socat", "curl"],
] as const;

/** What kubexm installs on nodes and gives back: fetched, but not installed, so that no up of a lab waits for the archive. */
export const FETCHED = ["ebtables", "ipset", "chrony", "bash-completion", "nfs-common", "open-iscsi"] as const;

/** Units that a container cannot use, or that would wake up in the middle of a test. */
const MASKED = [
  ...["console-getty.service", "getty@.service", "getty-static.service", "container-getty@.service"],
  ...["systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket"],
  ...["systemd-udevd-kernel.socket", "systemd-modules-load.service", "systemd-remount-fs.service"],
  ...["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"],
  ...["e2scrub_reap.service", "dev-hugepages.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount"],
  ...["sys-kernel-config.mount", "sys-fs-fuse-connections.mount", "systemd-pstore.service"],
];

/** Settings for the whole machine, not for one host: a container must not change them by booting. */
const MACHINE_SETTINGS = ["/usr/lib/sysctl.d/50-pid-max.conf", "/usr/lib/sysctl.d/99-protect-links.conf"];

const PROVISION = `
set -e
export DEBIAN_FRONTEND=noninteractive
rm -f /usr/sbin/policy-rc.d /etc/apt/apt.conf.d/docker-* /etc/dpkg/dpkg.cfg.d/docker-*
printf '%s\\n' 'Acquire::Languages "none";' 'Acquire::GzipIndexes "true";' 'APT::Install-Recommends "false";' \\
  >/etc/apt/apt.conf.d/90lab
apt-get update -qq
apt-get install -qq -y -o Dpkg::Options::=--force-unsafe-io ${PACKAGES.join(" ")}
apt-get clean
apt-get install -qq -y --download-only ${FETCHED.join(" ")}
for unit in ${MASKED.join(" ")}; do ln -sf /dev/null /etc/systemd/system/$unit; done
rm -f ${MACHINE_SETTINGS.join(" ")} /etc/ssh/ssh_host_* /var/lib/dbus/machine-id /etc/motd
rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/debconf/*-old
# dpkg rewrites its lists when the folders themselves are gone.
find /usr/share/doc /usr/share/man /usr/share/locale ! -type d -delete
: >/etc/machine-id
`;

const EXTRA = `
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
[ $# -eq 0 ] || apt-get install -qq -y -o Dpkg::Options::=--force-unsafe-io "$@"
apt-get clean
rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log
`;

export interface ImageOptions {
  /** Debian packages beside the usual ones. */
  packages?: readonly string[];
  /** Python 3, for tools that need it on the host. */
  withPython?: boolean;
}

const versionOf = (...parts: readonly string[]) =>
  createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 12);

const BASE_TAG = `${REPOSITORY}:${versionOf(SUITE, PROVISION)}`;

/** The image's name tells its content: another list of packages is another image. */
export function imageTag(options: ImageOptions = {}): string {
  const extra = extraPackages(options);
  return extra.length === 0 ? BASE_TAG : `${REPOSITORY}:${versionOf(SUITE, PROVISION, EXTRA, ...extra)}`;
}

function extraPackages({ packages = [], withPython = false }: ImageOptions): string[] {
  return [...new Set([...packages, ...(withPython ? ["python3"] : [])])].sort();
}

async function created(d: Docker, tag: string): Promise<number | undefined> {
  const [line] = await dockerLines(d, ["image", "ls", "--no-trunc", "--format", "{{.ID}}", tag]);
  if (line === undefined) return undefined;
  return Date.parse(await docker(d, ["image", "inspect", "--format", "{{.Created}}", tag]));
}

/** Without it nothing was started yet. */
export const hasImage = async (d: Docker) => (await created(d, BASE_TAG)) !== undefined;

const proxies = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/** What apt and mmdebstrap say at length, in one line. */
function buildFailure(error: unknown): never {
  const said = messageOf(error).trimEnd().split("\n").at(-1) ?? "";
  throw new UserError(
    `the lab image cannot be built (${said}): check that the Debian package archive can be reached, then try again`,
    { cause: error },
  );
}

/** Runs a script in a container of `from`, and keeps the result as `tag`. */
async function derive(d: Docker, from: string, tag: string, script: string, args: readonly string[], bar: Progress) {
  const name = `${BUILD_PREFIX}${owner()}-${randomBytes(4).toString("hex")}`;
  try {
    await docker(
      d,
      [
        ...[
          "run",
          "--name",
          name,
          "--label",
          `kubexm.lab.build=${owner()}`,
          "--network=host",
          ...proxies.flatMap((variable) => ["--env", variable]),
        ],
        ...[from, "/bin/sh", "-c", script, "sh", ...args],
      ],
      { onLine: (line) => bar.update(line) },
    ).catch(buildFailure);
    await docker(d, ["commit", "--change", "CMD []", "--change", `LABEL ${IMAGE_LABEL}=${tag}`, name, tag]);
  } finally {
    await docker(d, ["rm", "--force", "--volumes", name]).catch(() => undefined);
  }
}

/** A bare Debian: from the registry, or packed from the package archive where no registry can be reached. */
async function bareDebian(d: Docker, bar: Progress): Promise<string> {
  const official = `debian:${SUITE}`;
  if ((await created(d, official)) !== undefined) return official;
  bar.update(`docker pull ${official}`);
  const pulled = await docker(d, ["pull", official], { timeoutMs: PULL_SECONDS * 1000 }).then(
    () => true,
    () => false,
  );
  if (pulled) return official;
  const tag = `${REPOSITORY}-bare:${SUITE}`;
  if ((await created(d, tag)) !== undefined) return tag;
  if (!isRoot())
    throw new UserError(`no image registry can be reached: run as root, and the lab packs ${official} itself`);
  const packed = await once(`lab-base/${SUITE}-${process.arch}`, (dir) => pack(join(dir, "base.tar"), bar));
  await docker(d, ["import", join(packed, "base.tar"), tag]);
  return tag;
}

async function pack(file: string, bar: Progress): Promise<void> {
  await needCommands({ mmdebstrap: "mmdebstrap" }, "a lab without an image registry");
  bar.update("mmdebstrap");
  await scratch("mmdebstrap", (dir) =>
    run(
      "mmdebstrap",
      ["--variant=minbase", "--mode=root", "--include=ca-certificates", "--dpkgopt=force-unsafe-io", SUITE, file],
      { env: { TMPDIR: dir }, onLine: (line) => bar.update(line) },
    ).catch(buildFailure),
  );
}

async function buildBase(d: Docker, tag: string, bar: Progress): Promise<void> {
  await derive(d, await bareDebian(d, bar), tag, PROVISION, [], bar);
}

/**
 * Removes what had this tag before. Only those are looked at that carry the tag as our label; one that a host still runs on, or
 * that another image stands on, stays, and goes the next time.
 */
export async function removeFormer(d: Docker, tag: string): Promise<void> {
  const former = ["--filter", "dangling=true", "--filter", `label=${IMAGE_LABEL}=${tag}`];
  for (const id of await dockerLines(d, ["image", "ls", "--quiet", "--no-trunc", ...former]))
    await docker(d, ["image", "rm", id]).catch(() => undefined);
}

/** `make` under its own lock, with its progress shown, when the image is not there or its package indexes are old. */
async function keep(d: Docker, tag: string, make: (bar: Progress) => Promise<void>): Promise<string> {
  const fresh = async () => ((await created(d, tag)) ?? 0) > Date.now() - FRESH_DAYS * 86_400_000;
  if (await fresh()) return tag;
  return withLock(`image/${tag}`, async () => {
    if (await fresh()) return tag;
    const bar = progress(`Building lab image ${tag}`);
    try {
      await make(bar);
      await removeFormer(d, tag);
      bar.done();
    } catch (error) {
      bar.fail();
      // Without the archive an old image still serves.
      if ((await created(d, tag)) === undefined) throw error;
    }
    return tag;
  });
}

/** The image for lab hosts, built the first time. */
export async function ensureImage(d: Docker, options: ImageOptions = {}): Promise<string> {
  if (!(await hasImage(d))) await needDisk(await docker(d, ["info", "--format", "{{.DockerRootDir}}"]), DISK, "a lab");
  const base = await keep(d, BASE_TAG, (bar) => buildBase(d, BASE_TAG, bar));
  const extra = extraPackages(options);
  const tag = imageTag(options);
  return extra.length === 0 ? base : keep(d, tag, (bar) => derive(d, base, tag, EXTRA, extra, bar));
}
