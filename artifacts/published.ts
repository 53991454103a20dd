import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import PQueue from "p-queue";
import { UserError } from "../provider/errors";
import { cacheDir } from "../toolchain/cache";
import { firstGood } from "../toolchain/download";
import { codeOf } from "../toolchain/errors";
import { HttpError, UselessError, getText } from "../toolchain/http";
import { bare, pinned, presetMirrors, upstream, type FileId } from "./catalogue";
import { readCa } from "./fetch";
import { mirrored, sources, type Address, type Mirror, type Sources } from "./sources";
import { keyOf, unknownVersion } from "./wanted";

/** The part of a cluster's specification that says where files come from. */
export interface SourceSpec {
  zone: string;
  mirrors: { files: readonly Mirror[] };
}

/** `<address of a checksum file> <file>` → sha256, or null where there is none. */
type Found = Record<string, string | null>;

const AT_ONCE = 8;
const WAIT = { answerTimeoutMs: 20_000, idleTimeoutMs: 20_000 };
const ADVICE = "check the network (HTTPS_PROXY and NO_PROXY are respected) and mirrors.files in cluster.yaml";

/** The checksum of a file in a checksum file of any form: the hash alone, `hash  file` lines, such lines in a signed text. */
export function checksumIn(text: string, file: string): string | undefined {
  const rows = text
    .split("\n")
    .flatMap((line) => [/^([0-9a-f]{64})(?:\s+\*?(\S+))?\s*$/i.exec(line) ?? []].filter((row) => row.length > 0))
    .map(([, hash = "", name]) => ({ hash: hash.toLowerCase(), name }));
  const named = rows.find(({ name }) => name !== undefined && basename(name) === file);
  const alone = rows.length === 1 && rows[0]?.name === undefined ? rows[0] : undefined;
  return (named ?? alone)?.hash;
}

const recordPath = () => join(process.env["KUBEXM_CLUSTER_DIR"] || cacheDir(), "checksums.json");

async function readRecord(path: string): Promise<Found> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Found;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw new UserError(`${path} cannot be read (${codeOf(error) ?? "not JSON"}); remove it, and it is made anew`);
  }
}

async function writeRecord(path: string, found: Found): Promise<void> {
  // Another run may have written meanwhile.
  const all = Object.entries({ ...(await readRecord(path)), ...found }).sort(([a], [b]) => (a < b ? -1 : 1));
  await mkdir(dirname(path), { recursive: true });
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  await rename(fresh, path);
}

/** Reads checksum files: each once, and not at all what the record has. */
function reader(record: Found) {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const texts = new Map<string, Promise<string | null>>();
  const found: Found = {};

  const fetchText = async (address: Address, what: string): Promise<string | null> => {
    const trusted = await readCa(address);
    const attempt = async ({ url, ca }: { url: string; ca?: string }) => {
      try {
        return await getText(url, { ...WAIT, ...(ca !== undefined && { ca }) });
      } catch (error) {
        if (error instanceof HttpError && [404, 410].includes(error.status)) return null;
        throw error;
      }
    };
    const checked = async (at: { url: string; ca?: string }) => {
      const text = await attempt(at);
      if (text !== null && !/^[0-9a-f]{64}\b/im.test(text))
        throw new UselessError("what came holds no sha256: this is not a checksum file");
      return text;
    };
    return firstGood(what, [trusted], checked, { advice: ADVICE });
  };

  const sum = async (address: Address, file: string, what: string): Promise<string | undefined> => {
    const key = `${address.url} ${file}`;
    const known = record[key];
    if (known !== undefined) return known ?? undefined;
    const text = texts.get(address.url) ?? queue.add(() => fetchText(address, what));
    texts.set(address.url, text);
    const hash = checksumIn((await text) ?? "", file);
    found[key] = hash ?? null;
    return hash;
  };
  return { sum, found };
}

const checksumOf = ({ name, version, arch }: FileId) => `the checksum of ${name} ${version} for ${arch}`;

const absolute = (path: string) => resolve(path.replace(/^~(?=\/)/, homedir()));

const mirrorsOf = ({ zone, mirrors }: SourceSpec): Mirror[] =>
  [...presetMirrors(zone), ...mirrors.files].map((row) => ({
    ...row,
    ...(row.caPath !== undefined && { caPath: absolute(row.caPath) }),
  }));

/**
 * Where the files of a cluster come from, and the checksums that the catalogue does not have. They are fetched once and
 * recorded beside the cluster's state: another run asks nobody.
 */
export async function sourcesFor(spec: SourceSpec, files: readonly FileId[]): Promise<Sources> {
  const mirrors = mirrorsOf(spec);
  const own = mirrors.filter(({ ownChecksums }) => ownChecksums);
  const path = recordPath();
  const { sum, found } = reader(await readRecord(path));

  const rebuilt = async (id: FileId): Promise<string | undefined> => {
    const { url, sums } = upstream(id);
    for (const mirror of own) {
      const address = mirrored(mirror, sums);
      const hash = address && (await sum(address, basename(url), checksumOf(id)));
      if (hash !== undefined) return hash;
    }
    return undefined;
  };
  const published = async (id: FileId): Promise<string> => {
    const { url, sums } = upstream(id);
    const missed = own.length > 0 ? " (no mirror with ownChecksums has it)" : "";
    const hash = await sum({ url: sums }, basename(url), checksumOf(id) + missed);
    if (hash === undefined) throw unknownVersion(id, `${sums} does not know it`);
    return hash;
  };
  const look = async (id: FileId) => {
    const mine = await rebuilt(id);
    if (mine !== undefined) return { kind: "checksums", key: keyOf(id), hash: mine } as const;
    if (pinned(id) !== undefined) return undefined;
    return { kind: "published", key: keyOf(id), hash: await published(id) } as const;
  };
  const ids = new Map(files.map((file) => ({ ...file, version: bare(file.version) })).map((id) => [keyOf(id), id]));
  const rows = (await Promise.all([...ids.values()].map(look))).filter((row) => row !== undefined);
  if (Object.keys(found).length > 0) await writeRecord(path, found);
  const pick = (kind: "checksums" | "published") =>
    Object.fromEntries(rows.filter((row) => row.kind === kind).map(({ key, hash }) => [key, hash]));
  return sources.parse({ mirrors, checksums: pick("checksums"), published: pick("published") });
}
