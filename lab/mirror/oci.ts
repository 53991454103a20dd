import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EPOCH, type TarEntry, gzipTo, tar } from "./tar.js";
import type { Arch, Image } from "./types.js";

export interface Layer {
  /** The compressed file. */
  path: string;
  size: number;
  digest: string;
  diffId: string;
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
}

export interface Manifest {
  schemaVersion: 2;
  mediaType: string;
  config: Descriptor;
  layers: Descriptor[];
}

interface Index {
  schemaVersion: 2;
  mediaType: string;
  manifests: Descriptor[];
}

const TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
};
/** Where containerd and its tools look for the name of an image in a layout. */
const NAME = "io.containerd.image.name";
const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const blobAt = (layout: string, digest: string) => join(layout, "blobs", ...digest.split(":"));

async function linkOnce(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await link(from, to).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
}

/** Packs entries as a layer into the blobs of a layout. */
export async function writeLayer(layout: string, entries: readonly TarEntry[]): Promise<Layer> {
  const temporary = join(layout, `layer-${randomBytes(6).toString("hex")}`);
  await mkdir(layout, { recursive: true });
  const { size, sha256, inner } = await gzipTo(tar(entries), temporary);
  const digest = `sha256:${sha256}`;
  const path = blobAt(layout, digest);
  await mkdir(dirname(path), { recursive: true });
  await rename(temporary, path);
  return { path, size, digest, diffId: `sha256:${inner}` };
}

async function writeBlob(layout: string, mediaType: string, value: unknown): Promise<Descriptor> {
  const text = JSON.stringify(value);
  const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  const path = blobAt(layout, digest);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return { mediaType, digest, size: Buffer.byteLength(text) };
}

export interface ImageSpec extends Pick<Image, "refs" | "entrypoint" | "cmd" | "user"> {
  layers: readonly Layer[];
}

async function writeImage(layout: string, arch: Arch, image: ImageSpec): Promise<Descriptor[]> {
  const { refs, layers, entrypoint, cmd, user } = image;
  await Promise.all(layers.map((layer) => linkOnce(layer.path, blobAt(layout, layer.digest))));
  const created = EPOCH.toISOString();
  const config = await writeBlob(layout, TYPES.config, {
    created,
    architecture: arch,
    os: "linux",
    config: {
      Env: [PATH],
      ...(entrypoint && { Entrypoint: entrypoint }),
      ...(cmd && { Cmd: cmd }),
      ...(user !== undefined && { User: user }),
    },
    rootfs: { type: "layers", diff_ids: layers.map((layer) => layer.diffId) },
    history: layers.map(() => ({ created, created_by: "kubexm lab mirror" })),
  });
  const manifest = await writeBlob(layout, TYPES.manifest, {
    schemaVersion: 2,
    mediaType: TYPES.manifest,
    config,
    layers: layers.map(({ digest, size }) => ({ mediaType: TYPES.layer, digest, size })),
  } satisfies Manifest);
  return refs.map((ref) => ({ ...manifest, annotations: { [NAME]: ref } }));
}

/** Writes an OCI image layout that holds these images under their references. */
export async function writeLayout(layout: string, arch: Arch, images: readonly ImageSpec[]): Promise<void> {
  const manifests = (await Promise.all(images.map((image) => writeImage(layout, arch, image)))).flat();
  const index: Index = { schemaVersion: 2, mediaType: TYPES.index, manifests };
  await mkdir(layout, { recursive: true });
  await writeFile(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await writeFile(join(layout, "index.json"), JSON.stringify(index));
}

export interface StoredImage {
  ref: string;
  manifest: string;
  /** Every digest that the manifest names. */
  blobs: string[];
  layout: string;
}

/** What a layout holds. */
export async function readLayout(layout: string): Promise<StoredImage[]> {
  const read = async <T>(path: string) => JSON.parse(await readFile(path, "utf8")) as T;
  const { manifests } = await read<Index>(join(layout, "index.json"));
  return Promise.all(
    manifests.map(async ({ digest, annotations }) => {
      const { config, layers } = await read<Manifest>(blobAt(layout, digest));
      return {
        ref: annotations?.[NAME] ?? "",
        manifest: digest,
        blobs: [config, ...layers].map((blob) => blob.digest),
        layout,
      };
    }),
  );
}

export interface Reference {
  host: string;
  repository: string;
  tag: string;
}

/** `registry.k8s.io/coredns/coredns:v1.14.6` in its pieces. */
export function parseReference(ref: string): Reference {
  const [, host, repository, tag] = /^([^/]+)\/(.+):([^:/]+)$/.exec(ref) ?? [];
  if (host === undefined || repository === undefined || tag === undefined)
    throw new TypeError(`${ref}: not a full image reference`);
  return { host, repository, tag };
}

/** Lays an image out in the storage folder of a distribution registry, as a push of it would. */
export async function store(root: string, image: StoredImage, name: string, tag: string): Promise<void> {
  const v2 = join(root, "docker", "registry", "v2");
  const repository = join(v2, "repositories", ...name.split("/"));
  const hex = (digest: string) => digest.replace("sha256:", "");
  const mark = async (folder: string, digest: string) => {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "link"), digest);
  };
  for (const digest of [image.manifest, ...image.blobs]) {
    const data = join(v2, "blobs", "sha256", hex(digest).slice(0, 2), hex(digest), "data");
    await linkOnce(blobAt(image.layout, digest), data);
  }
  for (const digest of image.blobs) await mark(join(repository, "_layers", "sha256", hex(digest)), digest);
  const manifests = join(repository, "_manifests");
  await mark(join(manifests, "revisions", "sha256", hex(image.manifest)), image.manifest);
  await mark(join(manifests, "tags", tag, "index", "sha256", hex(image.manifest)), image.manifest);
  await mark(join(manifests, "tags", tag, "current"), image.manifest);
}
