import { createHash } from "node:crypto";
import { access, copyFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheDir, needDisk, once } from "../../toolchain/cache.js";
import { UserError, codeOf, messageOf } from "../../toolchain/errors.js";
import { needGoDisk } from "../../toolchain/go-disk.js";
import { ensureGo, goBuild } from "../../toolchain/go.js";
import { run } from "../../toolchain/process.js";
import { progress } from "../../toolchain/progress.js";
import { needPackages } from "../apt.js";
import { PARTS } from "./parts.js";
import type { Arch, Output, Part, Target } from "./types.js";

/** A part in one version for this machine's processor. */
export interface Wanted {
  /** `name@version` */
  id: string;
  name: string;
  target: Target;
  part: Part;
}

const ARCHES: Partial<Record<NodeJS.Architecture, Arch>> = { x64: "amd64", arm64: "arm64" };

export function machineArch(): Arch {
  const arch = ARCHES[process.arch];
  if (arch === undefined)
    throw new UserError(
      `the parts mirror builds for amd64 and arm64, this machine is ${process.arch}: use another one`,
    );
  return arch;
}

/** `etcd` or `etcd@3.6.14` (a leading v is fine) → the part it names. */
export function wanted(text: string, arch = machineArch()): Wanted {
  const [name = "", asked] = text.split("@");
  const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
  if (part === undefined)
    throw new UserError(`there is no part "${name}": the mirror has ${Object.keys(PARTS).join(", ")}`);
  const version = (asked ?? part.versions[0]).replace(/^v/, "");
  // A version becomes part of paths and of go.mod text.
  if (!/^[A-Za-z0-9][\w.-]*$/.test(version)) throw new UserError(`${text}: "${version}" is not a version`);
  return { id: `${name}@${version}`, name, target: { version, arch }, part };
}

/** A short name for a piece of data: what is made from other data gets another place in the cache. */
export const digest = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 8);

/** Where the outputs of a part are kept: a changed recipe is another place. */
export function buildKey({ name, target, part }: Wanted): string {
  return `parts/${name}-${target.version}-${target.arch}-${digest(part.outputs(target))}`;
}

let last: Promise<unknown> = Promise.resolve();

/** One after another: a single Go build already uses every core. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const mine = last.then(work);
  last = mine.catch(() => undefined);
  return mine;
}

const present = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** Installs Debian packages whose files are missing, where that can be done without asking. */
function needFiles(files: Record<string, string>, what: string): Promise<void> {
  const missing = async () => {
    const there = await Promise.all(Object.keys(files).map(present));
    return Object.values(files).filter((_, i) => !there[i]);
  };
  const hasApt = () => present("/usr/bin/apt-get");
  return needPackages({ what, missing, hasApt, advice: "install them yourself, then try again" });
}

async function moduleFolder(module: string): Promise<string> {
  const { bin, env } = await ensureGo();
  const { stdout } = await run(bin, ["mod", "download", "-json", module], { env: { ...env, GO111MODULE: "on" } });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

async function make(output: Output, dir: string, label: string, onLine: (line: string) => void): Promise<void> {
  const out = join(dir, output.out);
  if ("c" in output) {
    await run("gcc", ["-static", "-Os", "-s", "-Wall", "-x", "c", "-", "-o", out], { input: output.c });
  } else if ("module" in output) {
    await copyFile(join(await moduleFolder(output.module), output.path), out);
  } else {
    const { names = [], ...build } = output;
    // The newest modules may ask for a newer Go than the one at hand; Go fetches that itself from the module proxy.
    await goBuild({ ...build, name: label, out, env: { GOTOOLCHAIN: "auto" }, onLine });
    await Promise.all(names.map((name) => symlink(output.out, join(dir, name))));
  }
}

const DISK = 4 * 2 ** 30;

/** What Go's caches grow by for a part, when nothing is in them: about 11 GiB for the usual ones, half of that for Kubernetes. */
const COLD = { kubernetes: 6 * 2 ** 30, other: 2 ** 29 };

const byGo = ({ part, target }: Wanted) => part.outputs(target).some((output) => "goMod" in output);
const coldNeed = ({ name }: Wanted) => (name === "kubernetes" ? COLD.kubernetes : COLD.other);

/** The need of all that is not built yet. */
export async function goNeed(wants: readonly Wanted[]): Promise<number> {
  const sizes = await Promise.all(wants.map(builtSize));
  const cold = wants.filter((want, i) => sizes[i] === undefined && byGo(want));
  return cold.map(coldNeed).reduce((total, bytes) => total + bytes, 0);
}

/** Fails before the first of many builds that Go's caches have no room for. */
export const needBuildDisk = async (wants: readonly Wanted[]): Promise<void> =>
  needGoDisk(await goNeed(wants), "building the parts of a cluster");

/** The folder with the outputs of a part, built when it is not in the cache. */
export function ensureBuilt(want: Wanted): Promise<string> {
  const { id, part, target } = want;
  return once(buildKey(want), (dir) =>
    inTurn(async () => {
      await needDisk(dir, DISK, `building ${id}`);
      const told = progress(`build ${id}`);
      try {
        await needFiles(part.packages ?? {}, "it");
        for (const output of part.outputs(target)) {
          told.update(output.out);
          await make(output, dir, id, (line) => told.update(line.replace(/^go: /, "")));
        }
        told.done();
      } catch (error) {
        told.fail();
        throw new UserError(`${id} could not be built: ${messageOf(error)}`, { cause: error });
      }
    }),
  );
}

/** Tools that network set-up needs, for images that are more than one static program. */
const BASE_PACKAGES = "iptables,nftables,ipset,conntrack,iproute2,kmod,ca-certificates,curl";
const BASE_LEFT_OUT = ["doc", "man", "info", "locale"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);
const BASE_SUITE = "bookworm";
export const BASE_RECIPE = [BASE_SUITE, BASE_PACKAGES, ...BASE_LEFT_OUT];

/** A plain tar of a small Debian, made from the Debian archive. */
export async function ensureBase(): Promise<string> {
  const dir = await once(`parts/debian-base-${BASE_SUITE}-${machineArch()}-${digest(BASE_RECIPE)}`, async (to) => {
    const told = progress(`base system ${BASE_SUITE}`);
    try {
      const files = {
        "/usr/bin/mmdebstrap": "mmdebstrap",
        "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
      };
      await needFiles(files, "it");
      await run("mmdebstrap", [
        "--variant=essential",
        // Device files are the container runtime's business, and cannot be made everywhere.
        "--skip=output/dev,output/mknod",
        `--include=${BASE_PACKAGES}`,
        ...BASE_LEFT_OUT,
        BASE_SUITE,
        join(to, "base.tar"),
      ]);
      told.done();
    } catch (error) {
      told.fail();
      throw new UserError(`the base system could not be made: ${messageOf(error)}`, { cause: error });
    }
  });
  return join(dir, "base.tar");
}

/** Size of what is kept for a part, undefined when it is not built. */
export async function builtSize(want: Wanted): Promise<number | undefined> {
  const dir = join(cacheDir(), buildKey(want));
  try {
    const sizes = await Promise.all(want.part.outputs(want.target).map(({ out }) => stat(join(dir, out))));
    return sizes.reduce((total, { size }) => total + size, 0);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
