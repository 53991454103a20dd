import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { cacheDir } from "../../toolchain/cache.js";
import { UsageError, UserError, messageOf, understood } from "../../toolchain/errors.js";
import { owner } from "../../toolchain/owner.js";
import { writeService } from "../service-record.js";
import { builtSize, needBuildDisk, wanted } from "./build.js";
import { ensurePublished } from "./images.js";
import { PARTS } from "./parts.js";
import { USUAL_PARTS, startMirror } from "./serve.js";

const USAGE = `kubexm lab mirror: builds the parts of a cluster from the Go module proxy and serves them as upstream does
  build [PART…]                       PART is name or name@version; without any, what a usual cluster needs
  serve [--parts A,B] [--address IP] [--record FILE]
                                      until ^C; FILE tells where, as soon as all parts are there
  list                                parts and the versions that have been tried
  status                              what is built, and which mirrors run`;

const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;

function print(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}

async function build(parts: readonly string[]): Promise<number> {
  const wants = (parts.length > 0 ? parts : USUAL_PARTS).map((text) => wanted(text));
  await needBuildDisk(wants);
  const made = await Promise.allSettled(wants.map(ensurePublished));
  const failures = made.flatMap((one) => (one.status === "rejected" ? [messageOf(one.reason)] : []));
  if (failures.length > 0) throw new UserError(failures.join("\n"));
  print(await Promise.all(wants.map(async (want) => [want.id, mib((await builtSize(want)) ?? 0)])));
  return 0;
}

interface Serve {
  parts?: string | undefined;
  address?: string | undefined;
  record?: string | undefined;
}

async function serve({ parts, address, record }: Serve): Promise<number> {
  const mirror = await startMirror({
    ...(parts !== undefined && { parts: parts.split(",") }),
    ...(address !== undefined && { address }),
  });
  const { urls, caPath } = mirror;
  const told = { owner: owner(), urls, caPath };
  print([...Object.entries(urls), ["ca", caPath]]);
  const signal = new AbortController();
  const stopped = Promise.race(["SIGINT", "SIGTERM"].map((name) => once(process, name, { signal: signal.signal })));
  try {
    await Promise.race([
      stopped,
      mirror.ready
        .then(() => (record === undefined ? undefined : writeService(record, told)))
        .then(() => console.log(`${mirror.parts.size} parts ready`))
        .then(() => stopped),
    ]);
    return 0;
  } finally {
    signal.abort();
    await mirror.stop();
  }
}

function list(): number {
  print(Object.entries(PARTS).map(([name, { versions }]) => [name, versions.join(", ")]));
  return 0;
}

interface About {
  pid: number;
  urls: Record<string, string>;
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function running(): Promise<About[]> {
  const dir = join(cacheDir(), "tmp");
  const names = await readdir(dir).catch(() => []);
  const read = async (name: string) => JSON.parse(await readFile(join(dir, name, "about.json"), "utf8")) as About;
  const found = await Promise.allSettled(names.filter((name) => name.startsWith("mirror.tmp-")).map(read));
  return found.flatMap((one) => (one.status === "fulfilled" && isRunning(one.value.pid) ? [one.value] : []));
}

async function status(): Promise<number> {
  const all = Object.entries(PARTS).flatMap(([name, { versions }]) => versions.map((v) => wanted(`${name}@${v}`)));
  const wants = all.filter(({ part, target }) => part.outputs(target).length > 0);
  print(
    await Promise.all(
      wants.map(async (want) => {
        const size = await builtSize(want);
        return [want.id, size === undefined ? "not built" : mib(size)];
      }),
    ),
  );
  for (const { pid, urls } of await running())
    console.log(`running (process ${pid}): ${Object.values(urls).join(" ")}`);
  return 0;
}

/** `kubexm lab mirror …` */
export async function mirrorCommand(argv: readonly string[]): Promise<number> {
  const options = {
    parts: { type: "string" },
    address: { type: "string" },
    record: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  const { values, positionals } = understood(
    () => parseArgs({ args: [...argv], allowPositionals: true, options }),
    (reason) => new UsageError(`lab mirror: ${reason} (kubexm lab mirror --help)`),
  );
  const [verb, ...rest] = positionals;
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (verb === "build") return build(rest);
  if (verb === "serve") return serve(values);
  if (verb === "list") return list();
  if (verb === "status") return status();
  throw new UsageError(USAGE);
}
