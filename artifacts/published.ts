import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import PQueue from "p-queue";
import { UserError } from "../provider/errors";
import { cacheDir } from "../toolchain/cache";
import { NothingGoodError, firstGood } from "../toolchain/download";
import { codeOf } from "../toolchain/errors";
import { HttpError, UselessError, getText, openUrl } from "../toolchain/http";
import { bare, pinned, presetMirrors, upstream, type FileId } from "./catalogue";
import { readCa } from "./fetch";
import { localPath } from "./local-path";
import { addressesAt, sources, type Address, type Mirror, type Sources } from "./sources";
import { keyOf, unknownVersion } from "./wanted";

/** The part of a cluster's specification that says where files come from. */
export interface SourceSpec {
  zone: string;
  mirrors: { files: readonly Mirror[] };
}

/** What is known about a file beside the catalogue, and whom it was asked of. */
interface Known {
  /** null: an earlier version wrote down that nobody had it. */
  sha256: string | null;
  /** Of whom it was asked; other ones are asked anew. */
  asked: string[];
}
type Recorded = Readonly<Record<string, Known>>;

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

async function readRecord(path: string): Promise<Recorded> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Recorded;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw new UserError(`${path} cannot be read (${codeOf(error) ?? "not JSON"}); remove it, and it is made anew`);
  }
}

async function writeRecord(path: string, found: Recorded): Promise<void> {
  // Another run may have written meanwhile.
  const all = Object.entries({ ...(await readRecord(path)), ...found }).sort(([a], [b]) => (a < b ? -1 : 1));
  await mkdir(dirname(path), { recursive: true });
  // Several of one process may write at once.
  const fresh = `${path}.tmp-${randomBytes(6).toString("hex")}`;
  await writeFile(fresh, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  await rename(fresh, path);
}

class UnlistedError extends UselessError {}

const isMissing = (error: unknown) =>
  error instanceof UnlistedError || (error instanceof HttpError && [404, 410].includes(error.status));

/** Looks for the checksum of a file at one address after the other; null when none has it. Every checksum file is read once. */
function reader() {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const texts = new Map<string, Promise<string>>();

  const textAt = ({ url, ca }: { url: string; ca?: string }): Promise<string> => {
    const get = () => getText(url, { ...WAIT, ...(ca !== undefined && { ca }) });
    const text = texts.get(url) ?? queue.add(get);
    texts.set(url, text);
    text.catch(() => texts.delete(url));
    return text;
  };

  return async (what: string, addresses: readonly Address[], file: string): Promise<string | null> => {
    const checksumAt = async (address: { url: string; ca?: string }): Promise<string> => {
      const text = await textAt(address);
      const sha256 = checksumIn(text, file);
      if (sha256 !== undefined) return sha256;
      if (/^[0-9a-f]{64}\b/im.test(text)) throw new UnlistedError(`${file} is not in it`);
      throw new UselessError("what came holds no sha256: this is not a checksum file");
    };
    try {
      return await firstGood(what, await Promise.all(addresses.map(readCa)), checksumAt, { advice: ADVICE });
    } catch (error) {
      if (error instanceof NothingGoodError && error.reasons.every(isMissing)) return null;
      throw error;
    }
  };
}

const mirrorsOf = ({ zone, mirrors }: SourceSpec): Mirror[] =>
  [...mirrors.files, ...presetMirrors(zone)].map((row) => ({
    ...row,
    ...(row.caPath !== undefined && { caPath: localPath(row.caPath) }),
  }));

/**
 * Where the files of a cluster come from, and the checksums that the catalogue does not have. They are fetched once and
 * recorded beside the cluster's state: another run asks nobody. What is needed only perhaps may be missing; where mirrors with
 * checksums of their own are named, nobody else is asked for it, as the way there may take long to be found closed.
 */
export async function sourcesFor(
  spec: SourceSpec,
  files: readonly FileId[],
  perhaps: readonly FileId[] = [],
): Promise<Sources> {
  const mirrors = mirrorsOf(spec);
  const path = recordPath();
  const record = await readRecord(path);
  const found: Record<string, Known> = {};
  const read = reader();

  const ask = async (key: string, what: string, addresses: readonly Address[], file: string) => {
    const asked = addresses.map(({ url }) => openUrl(url));
    const known = record[key];
    if (known?.sha256 && known.asked.join() === asked.join()) return known.sha256;
    const sha256 = await read(what, addresses, file);
    // What nobody has today may be there tomorrow.
    if (sha256 !== null) found[key] = { sha256, asked };
    return sha256;
  };
  const look = async (id: FileId, onlyOwn = false): Promise<Partial<Sources>> => {
    const { url, sums } = upstream(id);
    const [key, file] = [keyOf(id), basename(url)];
    const what = `the checksum of ${id.name} ${id.version} for ${id.arch}`;
    const own = addressesAt(mirrors, true, sums);
    const rebuilt = own.length > 0 ? await ask(key, what, own, file) : null;
    if (rebuilt !== null) return { checksums: { [key]: rebuilt } };
    if (pinned(id) !== undefined || (onlyOwn && own.length > 0)) return {};
    const missed = own.length > 0 ? " (no mirror with ownChecksums has it)" : "";
    const published = await ask(`${key} upstream`, what + missed, [{ url: sums }], file);
    if (published === null) throw unknownVersion(id, `${sums} does not know it`);
    return { published: { [key]: published } };
  };
  const ids = (all: readonly FileId[]) => [
    ...new Map(all.map((file) => ({ ...file, version: bare(file.version) })).map((id) => [keyOf(id), id])).values(),
  ];
  const rows = await Promise.all([
    ...ids(files).map((id) => look(id)),
    ...ids(perhaps).map((id) => look(id, true).catch((): Partial<Sources> => ({}))),
  ]);
  if (Object.keys(found).length > 0) await writeRecord(path, found);
  return sources.parse({
    mirrors,
    checksums: Object.assign({}, ...rows.map(({ checksums }) => checksums)) as Sources["checksums"],
    published: Object.assign({}, ...rows.map(({ published }) => published)) as Sources["published"],
  });
}
