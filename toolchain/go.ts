import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { needDisk, once, scratch } from "./cache.js";
import { download } from "./download.js";
import { UserError } from "./errors.js";
import { run } from "./process.js";
import { showing } from "./progress.js";
import { atLeast } from "./version.js";
import { unzip } from "./zip.js";

/** What the newest of the modules we build asks for. */
const GO_NEEDED = "1.26.2";
const GO_PINNED = "1.26.8";
const GO_DISK = 400 * 2 ** 20;

/** sha256 of Go's own module zips of GO_PINNED, by platform. */
const GO_ZIPS: Record<string, { name: string; sha256: string }> = {
  "linux-x64": { name: "linux-amd64", sha256: "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7" },
  "linux-arm64": { name: "linux-arm64", sha256: "02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99" },
};

export interface Go {
  bin: string;
  env: Record<string, string | undefined>;
}

export interface GoBuild {
  /** What people see while it builds. */
  name: string;
  /** Text of the wrapper module's go.mod. */
  goMod: string;
  /** More files of the wrapper module, by path. */
  files?: Record<string, string>;
  package: string;
  tags?: string;
  ldflags?: string;
  cgo?: boolean;
  env?: Record<string, string>;
  out: string;
  onLine?: (line: string) => void;
}

/** Our own modules decide about flags and versions, not the user's settings; proxies and checksum databases stay theirs. */
const GO_ENV = { GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod -buildvcs=false", GOWORK: "off" };

async function goOnPath(): Promise<Go | undefined> {
  const version = await run("go", ["env", "GOVERSION"], { cwd: "/", env: GO_ENV }).catch(() => undefined);
  return version && atLeast(version.stdout, GO_NEEDED) ? { bin: "go", env: GO_ENV } : undefined;
}

function proxies(): string[] {
  const list = (process.env["GOPROXY"] || "https://proxy.golang.org").split(/[,|]/);
  return list.filter((proxy) => /^https?:/.test(proxy)).map((proxy) => proxy.replace(/\/$/, ""));
}

async function goFromProxy(): Promise<Go> {
  const zip = GO_ZIPS[`${process.platform}-${process.arch}`];
  const urls = proxies().map((proxy) => `${proxy}/golang.org/toolchain/@v/v0.0.1-go${GO_PINNED}.${zip?.name}.zip`);
  if (zip === undefined || urls.length === 0)
    throw new UserError(
      `Go ${GO_NEEDED} or newer is needed and cannot be fetched ${zip ? `with GOPROXY=${process.env["GOPROXY"]}` : "for this machine"}: install it from https://go.dev/dl/`,
    );
  const root = await once(`go/${GO_PINNED}-${zip.name}`, async (dir) => {
    await needDisk(dir, GO_DISK, `Go ${GO_PINNED}`);
    await showing(`Go ${GO_PINNED}`, (told) =>
      scratch("go-zip", async (tmp) => {
        const to = join(tmp, "go.zip");
        await download({
          urls,
          sha256: zip.sha256,
          to,
          onProgress: (got, total) => told.update(`${Math.floor((100 * got) / (total ?? got))} %`),
        });
        told.update("unpacking");
        const prefix = `golang.org/toolchain@v0.0.1-go${GO_PINNED}.${zip.name}/`;
        await unzip(to, dir, prefix, (name) => /^(bin|pkg\/tool)\//.test(name));
      }),
    );
  });
  const bin = join(root, "bin", "go");
  const path = [dirname(bin), process.env["PATH"] ?? ""].join(delimiter);
  return { bin, env: { ...GO_ENV, GOROOT: undefined, PATH: path } };
}

/** Go from PATH when it is new enough, else the pinned one, fetched from the Go module proxy into the cache. */
export async function ensureGo(): Promise<Go> {
  return (await goOnPath()) ?? goFromProxy();
}

/** What Go says of its settings, as our builds have them. */
export async function goEnvironment(...names: readonly string[]): Promise<string[]> {
  const { bin, env } = await ensureGo();
  const { stdout } = await run(bin, ["env", ...names], { cwd: "/", env: { HOME: homedir(), ...env } });
  return stdout.trimEnd().split("\n");
}

/** Builds one program out of published modules; `go` checks them against its checksum database as always. */
export async function goBuild(build: GoBuild): Promise<void> {
  const { name, goMod, files = {}, tags, ldflags, cgo = false, env, out, onLine } = build;
  const { bin, env: goEnv } = await ensureGo();
  const args = [
    ["build", "-mod=mod", "-trimpath", "-o", out],
    tags === undefined ? [] : ["-tags", tags],
    ldflags === undefined ? [] : ["-ldflags", ldflags],
    // One line for each package compiled: the only sign of life in a long build.
    onLine === undefined ? [] : ["-v"],
    [build.package],
  ].flat();
  await mkdir(dirname(out), { recursive: true });
  await scratch(`go-build-${name.replaceAll(/[^\w.]+/g, "-")}`, async (dir) => {
    for (const [path, text] of Object.entries({ ...files, "go.mod": goMod })) {
      await mkdir(dirname(join(dir, path)), { recursive: true });
      await writeFile(join(dir, path), text);
    }
    await run(bin, args, {
      cwd: dir,
      env: { HOME: homedir(), ...goEnv, CGO_ENABLED: cgo ? "1" : "0", ...env },
      ...(onLine && { onLine }),
    });
  });
}
