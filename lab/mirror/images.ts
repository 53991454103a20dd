import { createReadStream } from "node:fs";
import { link, mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { once } from "../../toolchain/cache.js";
import { run } from "../../toolchain/process.js";
import { BASE_RECIPE, buildKey, digest, ensureBase, ensureBuilt, type Wanted } from "./build.js";
import {
  type ImageSpec,
  type Layer,
  type StoredImage,
  parseReference,
  readLayout,
  writeLayer,
  writeLayout,
} from "./oci.js";
import { type TarEntry, gzipTo, sha256File, tar } from "./tar.js";
import type { Download, Image, SumShape } from "./types.js";

/** A part ready to be served. */
export interface Published {
  /** Upstream address (without https://) → file. */
  files: ReadonlyMap<string, string>;
  images: readonly StoredImage[];
  /** References that programs of this part will ask for. */
  expects: readonly string[];
}

export interface SumLine {
  sha256: string;
  name: string;
}

const SIGNED_HEAD = ["-----BEGIN PGP SIGNED MESSAGE-----", "Hash: SHA512", ""];
const SIGNED_TAIL = [
  "-----BEGIN PGP SIGNATURE-----",
  "Comment: rebuilt by a kubexm lab mirror, signed by nobody",
  "-----END PGP SIGNATURE-----",
];

/** Text of a checksum file in the form that upstream gives it. */
export function sumText(shape: SumShape, sums: readonly SumLine[]): string {
  const lines = sums.map(({ sha256, name }) => `${sha256}  ${name}`);
  const forms: Record<SumShape, readonly string[]> = {
    bare: sums.map(({ sha256 }) => sha256),
    lines,
    signed: [...SIGNED_HEAD, ...lines, ...SIGNED_TAIL],
  };
  return `${forms[shape].join("\n")}\n`;
}

/** Every folder above these paths, parents first. */
function folders(paths: readonly string[]): TarEntry[] {
  const above = paths.flatMap((path) =>
    path
      .split("/")
      .slice(0, -1)
      .map((_, i, parts) => parts.slice(0, i + 1).join("/")),
  );
  return [...new Set(above)].sort().map((path) => ({ path, body: { folder: true } }));
}

/** An output as it goes into an archive: more names of one file stay links to it. */
async function entry(path: string, built: string, output: string): Promise<TarEntry> {
  const file = join(built, output);
  const real = await realpath(file);
  const isName = basename(real) !== basename(output);
  return { path, body: isName ? { link: basename(real) } : { file } };
}

async function layerEntries(built: string, files: Image["files"]): Promise<TarEntry[]> {
  const paths = Object.entries(files).map(([path, content]): [string, typeof content] => [path.slice(1), content]);
  const entries = paths.map(async ([path, content]) =>
    typeof content === "string" ? entry(path, built, content) : { path, body: content },
  );
  return [...folders(paths.map(([path]) => path)), ...(await Promise.all(entries))];
}

const TINY: TarEntry[] = [
  ...folders(["etc/x", "tmp/x"]).map((folder) => (folder.path === "tmp" ? { ...folder, mode: 0o1777 } : folder)),
  {
    path: "etc/passwd",
    body: { text: "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n" },
  },
  { path: "etc/group", body: { text: "root:x:0:\nnogroup:x:65534:\n" } },
];

/** The Debian system as a layer, made once for all images. */
async function debianLayer(): Promise<Layer> {
  const base = await ensureBase();
  const dir = await once(`${basename(dirname(base))}-layer`, async (to) => {
    const { size, sha256, inner } = await gzipTo(createReadStream(base), join(to, "layer.tar.gz"));
    await writeFile(
      join(to, "layer.json"),
      JSON.stringify({ size, digest: `sha256:${sha256}`, diffId: `sha256:${inner}` }),
    );
  });
  const about = JSON.parse(await readFile(join(dir, "layer.json"), "utf8")) as Omit<Layer, "path">;
  return { ...about, path: join(dir, "layer.tar.gz") };
}

async function publishImages(
  layout: string,
  built: string,
  { target }: Wanted,
  images: readonly Image[],
): Promise<void> {
  const layers = new Map<string, Promise<Layer>>();
  // Images of one part often hold the same programs: the layer is packed once and shared.
  const shared = (key: string, pack: () => Promise<Layer>) => {
    const layer = layers.get(key) ?? pack();
    layers.set(key, layer);
    return layer;
  };
  const specs = images.map(async (image): Promise<ImageSpec> => {
    const base = await shared(image.base, () => (image.base === "debian" ? debianLayer() : writeLayer(layout, TINY)));
    const own = async () => writeLayer(layout, await layerEntries(built, image.files));
    const more = Object.keys(image.files).length === 0 ? [] : [await shared(JSON.stringify(image.files), own)];
    return { ...image, layers: [base, ...more] };
  });
  await writeLayout(layout, target.arch, await Promise.all(specs));
}

async function publishFile(www: string, built: string, { url, body }: Download): Promise<SumLine> {
  const to = join(www, url);
  const name = basename(url);
  await mkdir(dirname(to), { recursive: true });
  if (typeof body === "string") {
    await link(await realpath(join(built, body)), to);
    return { sha256: await sha256File(to), name };
  }
  const entries = Object.entries(body).map(async ([path, output]): Promise<TarEntry> =>
    output === undefined ? { path, body: { folder: true } } : entry(path, built, output),
  );
  const { sha256 } = await gzipTo(tar(await Promise.all(entries)), to);
  return { sha256, name };
}

async function publishFiles(www: string, built: string, downloads: readonly Download[]): Promise<void> {
  const sums = new Map<string, { shape: SumShape; lines: SumLine[] }>();
  for (const download of downloads) {
    const line = await publishFile(www, built, download);
    for (const { url, shape } of download.sums) {
      const sum = sums.get(url) ?? { shape, lines: [] };
      sums.set(url, { shape, lines: [...sum.lines, line] });
    }
  }
  for (const [url, { shape, lines }] of sums) await writeFile(join(www, url), sumText(shape, lines));
}

/** Upstream addresses of everything a part has for download, checksum files included. */
export function addresses({ part, target }: Wanted): string[] {
  const downloads = part.downloads?.(target) ?? [];
  return [...new Set(downloads.flatMap(({ url, sums }) => [url, ...sums.map((sum) => sum.url)]))];
}

/** To be raised when packing changes, so that what an older version packed is not served. */
const FORMAT = 1;

/** The part as it is served, built and packed when it is not in the cache. */
export async function ensurePublished(want: Wanted): Promise<Published> {
  const { part, target } = want;
  const downloads = part.downloads?.(target) ?? [];
  const images = part.images?.(target) ?? [];
  const form = digest([FORMAT, downloads, images, images.some(({ base }) => base === "debian") && BASE_RECIPE]);
  const dir = await once(`${buildKey(want)}-served-${form}`, async (to) => {
    const built = await ensureBuilt(want);
    await publishFiles(join(to, "www"), built, downloads);
    await publishImages(join(to, "oci"), built, want, images);
    const [program, ...args] = part.expects?.(target) ?? [];
    const said = program === undefined ? "" : (await run(join(built, program), args)).stdout;
    await writeFile(join(to, "expects"), said);
  });
  const expects = (await readFile(join(dir, "expects"), "utf8")).split("\n").filter((line) => line !== "");
  return {
    files: new Map(addresses(want).map((url) => [url, join(dir, "www", url)])),
    images: await readLayout(join(dir, "oci")),
    expects,
  };
}

export interface Tag {
  repository: string;
  tag: string;
  image: StoredImage;
}

/**
 * Which tag points to which image. A reference that a program asks for and nobody has by that very tag gets the image of
 * its repository: kubeadm names one version of etcd, CoreDNS and pause, the mirror has another that does as well.
 */
export function tags(published: readonly Published[]): Tag[] {
  const own = published.flatMap(({ images }) => images.map((image) => ({ image, ...parseReference(image.ref) })));
  const asked = [...new Set(published.flatMap(({ expects }) => expects))].map(parseReference);
  const borrowed = asked.flatMap(({ repository, tag }) => {
    const same = own.filter((image) => image.repository === repository);
    const found = same.some((image) => image.tag === tag) ? undefined : same[0];
    return found ? [{ repository, tag, image: found.image }] : [];
  });
  return [...own.map(({ repository, tag, image }) => ({ repository, tag, image })), ...borrowed];
}
