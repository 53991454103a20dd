import { constants } from "node:fs";
import {
  access,
  chmod,
  copyFile,
  lstat,
  mkdir,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { cacheDir, needDisk, once, scratch } from "./cache.js";
import { download } from "./download.js";
import { UserError, messageOf } from "./errors.js";
import { needGoDisk } from "./go-disk.js";
import { goBuild } from "./go.js";
import { getText } from "./http.js";
import { run } from "./process.js";
import { type Progress, progress } from "./progress.js";
import { atLeast, parseVersion } from "./version.js";

/** The versions that are tried together; package.json names the same SDK. */
export const PULUMI = { cli: "3.259.0", sdk: "3.248.0", oldestCli: "3.181.0", tooNewMajor: 4 } as const;

/** The last published module that carries the Node language host. */
const LANGUAGE_HOST_SDK = "3.68.0";
/** What is built, and what Go's caches grow by. */
const BUILD_DISK = 2 ** 29;
const GO_DISK = 3 * 2 ** 30;
const OFFLINE_AFTER_MS = 5000;
const PLUGIN = "pulumi-resource-pulumi-nodejs";
const PROGRAMS = ["pulumi", "pulumi-language-nodejs", PLUGIN];
const ORIGIN_FILE = "origin";

export interface Pulumi {
  /** Folder with pulumi, pulumi-language-nodejs and pulumi-resource-pulumi-nodejs. */
  bin: string;
  env: Record<string, string>;
  version: string;
  origin: "path" | "download" | "built";
}

type Found = Omit<Pulumi, "env">;

const runnable = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

async function missingIn(dir: string): Promise<string[]> {
  const there = await Promise.all(PROGRAMS.map((name) => runnable(join(dir, name))));
  return PROGRAMS.filter((_, i) => !there[i]);
}

/** The Pulumi CLI of a PATH, or why it is not taken. */
export async function pulumiOnPath(path: string): Promise<Found | string> {
  const dirs = path.split(delimiter).filter((dir) => dir !== "");
  const there = await Promise.all(dirs.map((dir) => runnable(join(dir, "pulumi"))));
  const dir = dirs.find((_, i) => there[i]);
  if (dir === undefined) return "none there";
  const cli = await realpath(join(dir, "pulumi"));
  try {
    const version = (await run(cli, ["version"], { timeoutMs: 30_000, env: { PULUMI_SKIP_UPDATE_CHECK: "true" } }))
      .stdout;
    const numbers = parseVersion(version);
    if (numbers === undefined) return `${cli} tells no version`;
    const known = numbers.join(".");
    if (!atLeast(version, PULUMI.oldestCli) || atLeast(version, `${PULUMI.tooNewMajor}.0.0`))
      return `${cli} is ${known}, needed is ${PULUMI.oldestCli} or newer, below ${PULUMI.tooNewMajor}`;
    const missing = await missingIn(dirname(cli));
    if (missing.length > 0) return `${cli} has no ${missing.join(" and no ")} beside it`;
    return { bin: dirname(cli), version: known, origin: "path" };
  } catch (error) {
    return messageOf(error);
  }
}

/** The checksum that a `sha256  name` list gives for a file. */
export function checksumOf(list: string, file: string): string {
  const line = list.split("\n").find((line) => line.trim().split(/\s+\*?/)[1] === file);
  const sum = line?.trim().split(/\s+/)[0] ?? "";
  if (!/^[0-9a-f]{64}$/i.test(sum)) throw new UserError(`the checksum file does not name ${file}`);
  return sum;
}

async function firstText(urls: readonly string[]): Promise<string> {
  const reasons: string[] = [];
  for (const url of urls) {
    try {
      return await getText(url, { answerTimeoutMs: OFFLINE_AFTER_MS });
    } catch (error) {
      reasons.push(`${url}: ${messageOf(error)}`);
    }
  }
  throw new UserError(reasons.join("; "));
}

async function downloadInto(dir: string, told: Progress): Promise<void> {
  const file = `pulumi-v${PULUMI.cli}-${process.platform}-${process.arch}.tar.gz`;
  const places = [
    `https://github.com/pulumi/pulumi/releases/download/v${PULUMI.cli}`,
    "https://get.pulumi.com/releases/sdk",
  ];
  told.update("looking for the official download");
  const sums = await firstText(places.map((place) => `${place}/pulumi-${PULUMI.cli}-checksums.txt`));
  await scratch("pulumi-download", async (tmp) => {
    const to = join(tmp, file);
    await download({
      urls: places.map((place) => `${place}/${file}`),
      sha256: checksumOf(sums, file),
      to,
      answerTimeoutMs: OFFLINE_AFTER_MS,
      onProgress: (got, total) => told.update(`downloading, ${Math.floor((100 * got) / (total ?? got))} %`),
    });
    await run("tar", ["-xzf", to, "-C", tmp]);
    const unpacked = join(tmp, "pulumi");
    for (const name of await readdir(unpacked))
      if (PROGRAMS.includes(name)) await copyFile(join(unpacked, name), join(dir, name));
  });
}

const CLI_MODULE = `module kubexm.local/pulumi
go 1.25.11
require (
	github.com/pulumi/pulumi/pkg/v3 v${PULUMI.cli}
	github.com/pulumi/pulumi/sdk/v3 v${PULUMI.cli}
)
replace github.com/atotto/clipboard => github.com/tgummerer/clipboard v0.0.0-20241001131231-d02d263e614e
`;

const LANGUAGE_HOST_MODULE = `module kubexm.local/pulumi-language-nodejs
go 1.25.11
require github.com/pulumi/pulumi/sdk/v3 v${LANGUAGE_HOST_SDK}
`;

const VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version";

async function buildInto(dir: string, told: Progress): Promise<void> {
  const building = (program: string) => {
    let packages = 0;
    told.update(`building ${program}`);
    return (line: string) => {
      const fetched = /^go: downloading (\S+)/.exec(line)?.[1];
      if (fetched === undefined) packages++;
      told.update(`building ${program}: ${fetched ? `fetching ${fetched}` : `${packages} packages compiled`}`);
    };
  };
  const common = { tags: "osusergo,grpcnotrace" };
  await needDisk(cacheDir(), BUILD_DISK, "Building Pulumi");
  await needGoDisk(GO_DISK, "Building Pulumi");
  await goBuild({
    ...common,
    name: "pulumi",
    goMod: CLI_MODULE,
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    ldflags: `-w -s -X ${VERSION_VARIABLE}=v${PULUMI.cli}`,
    out: join(dir, "pulumi"),
    onLine: building("pulumi (about 5 minutes on 2 cores)"),
  });
  await goBuild({
    ...common,
    name: "pulumi-language-nodejs",
    goMod: LANGUAGE_HOST_MODULE,
    package: "github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs",
    ldflags: `-w -s -X ${VERSION_VARIABLE}=v${LANGUAGE_HOST_SDK}`,
    out: join(dir, "pulumi-language-nodejs"),
    onLine: building("pulumi-language-nodejs"),
  });
}

/** The folder of the SDK, which has to be the one that is tried together with the CLI. */
export async function sdkFolder(manifest = require.resolve("@pulumi/pulumi/package.json")): Promise<string> {
  const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version?: unknown };
  if (version !== PULUMI.sdk)
    throw new UserError(`@pulumi/pulumi ${String(version)} is installed, ${PULUMI.sdk} is needed: run npm ci`);
  return dirname(manifest);
}

/**
 * The start script of the dynamic provider comes with the SDK: one in the cache may be of the SDK before. By rename, as another
 * run may be starting it.
 */
export async function addPlugin(dir: string, sdk: string): Promise<void> {
  const [from, to] = [join(sdk, PLUGIN), join(dir, PLUGIN)];
  const [wanted, there] = await Promise.all([readFile(from), readFile(to).catch(() => undefined)]);
  if (there?.equals(wanted)) return;
  const fresh = `${to}.${process.pid}`;
  await copyFile(from, fresh);
  await chmod(fresh, 0o755);
  await rename(fresh, to);
}

/** Fills `dir` from the official download or, when that cannot be had, by a build; tells which it was. */
async function fill(dir: string, onPath: string): Promise<void> {
  const told = progress(`Pulumi ${PULUMI.cli}`);
  const reasons: string[] = [];
  const ways = { download: downloadInto, built: buildInto };
  for (const [origin, way] of Object.entries(ways)) {
    try {
      await way(dir, told);
      await addPlugin(dir, await sdkFolder());
      const env = { PULUMI_SKIP_UPDATE_CHECK: "true", PULUMI_HOME: await ownHome() };
      await run(join(dir, "pulumi"), ["version"], { env });
      await writeFile(join(dir, ORIGIN_FILE), origin);
      told.done(
        origin === "built" ? "built from the Go module proxy" : "downloaded, checked against its checksum file",
      );
      return;
    } catch (error) {
      reasons.push(messageOf(error));
    }
  }
  told.fail();
  throw new UserError(
    [
      `there is no usable Pulumi (${PULUMI.oldestCli} or newer, below ${PULUMI.tooNewMajor}):`,
      `  on PATH: ${onPath}`,
      `  official download: ${reasons[0]}`,
      `  built from the Go module proxy: ${reasons[1]}`,
      "  what to do: install it (https://www.pulumi.com/docs/iac/download-install/), or let this machine reach github.com or a Go module proxy (GOPROXY)",
    ].join("\n"),
  );
}

async function cached(onPath: string): Promise<Found> {
  const key = `pulumi/${PULUMI.cli}-${process.platform}-${process.arch}`;
  const sdk = await sdkFolder();
  const bin = await once(key, (dir) => fill(dir, onPath));
  await addPlugin(bin, sdk);
  const origin = (await readFile(join(bin, ORIGIN_FILE), "utf8")) === "built" ? "built" : "download";
  return { bin, version: PULUMI.cli, origin };
}

/**
 * Pulumi writes down every call of every run below its home, which is half of its work, and nobody reads it. It does without
 * where it cannot make that folder.
 */
export async function withoutLogs(home: string): Promise<string> {
  const logs = join(home, "logs");
  const found = await lstat(logs).catch(() => undefined);
  if (found?.isFile()) return home;
  await mkdir(home, { recursive: true });
  await rm(logs, { recursive: true, force: true });
  // A Pulumi that starts at this moment may have made the folder again: then the next run is without.
  await writeFile(logs, "In place of a folder, so that Pulumi does not log every run here.\n").catch(() => undefined);
  return home;
}

const ownHome = () => withoutLogs(join(cacheDir(), "pulumi-home"));

async function find(): Promise<Pulumi> {
  const path = process.env["PATH"] ?? "";
  const onPath = await pulumiOnPath(path);
  const found = typeof onPath === "string" ? await cached(onPath) : onPath;
  return {
    ...found,
    env: {
      PATH: [found.bin, path].join(delimiter),
      PULUMI_HOME: process.env["PULUMI_HOME"] ?? (await ownHome()),
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    },
  };
}

let found: Promise<Pulumi> | undefined;

/** Pulumi from PATH when it fits, else the pinned one: downloaded where that works, built where only Go modules can be had. */
export function ensurePulumi(): Promise<Pulumi> {
  found ??= find();
  return found;
}
