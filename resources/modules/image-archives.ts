import { z } from "zod";
import { localPath, sha256Of } from "../../artifacts";
import { UserError, textOf } from "../../provider/errors";
import type { ImageArchive } from "../images";

const dockerManifest = z.array(z.object({ RepoTags: z.array(z.string()).nullish() }));
const ociIndex = z.object({
  manifests: z.array(z.object({ annotations: z.record(z.string(), z.string()).optional() })),
});

/** Which file of an archive names its images, and how. A full name has a registry, as containerd wants it. */
const lists: Readonly<Record<string, (content: unknown) => readonly (string | undefined)[]>> = {
  "manifest.json": (content) => dockerManifest.parse(content).flatMap(({ RepoTags }) => (RepoTags ?? []).map(fullName)),
  "index.json": (content) =>
    ociIndex.parse(content).manifests.map(({ annotations }) => annotations?.["io.containerd.image.name"]),
};

/** docker leaves out its own registry: pause:3.10 is docker.io/library/pause:3.10. */
function fullName(name: string): string {
  const [first = "", ...rest] = name.split("/");
  if (rest.length === 0) return `docker.io/library/${name}`;
  return /[.:]|^localhost$/.test(first) ? name : `docker.io/${name}`;
}

const what = (path: string, problem: string) =>
  new UserError(
    `mirrors.imageArchives: ${path} ${problem}; write the path of an archive made by docker save or ctr images export --local`,
  );

async function namesIn(path: string): Promise<string[]> {
  const { list } = await import("tar");
  const texts = new Map<string, Promise<string>>();
  await list({
    file: path,
    strict: true,
    onReadEntry: (entry) => {
      const name = entry.path.replace(/^\.\//, "");
      if (name in lists) texts.set(name, entry.concat().then(String));
    },
  });
  const found = await Promise.all([...texts].map(async ([name, text]) => lists[name]?.(JSON.parse(await text)) ?? []));
  return [...new Set(found.flat().filter((name) => name !== undefined))].sort();
}

async function read(written: string): Promise<ImageArchive> {
  const path = localPath(written);
  const [images, sha256] = await Promise.all([namesIn(path), sha256Of(path)]).catch((error: unknown) => {
    throw what(written, `cannot be read (${textOf(error)})`);
  });
  if (images.length === 0) throw what(written, "names no image");
  return { path, sha256, images };
}

const known = new Map<string, Promise<ImageArchive>>();

/** Read once in the life of this process, as an archive may be large; a failure is not kept. */
export function readImageArchive(written: string): Promise<ImageArchive> {
  const reading = known.get(written) ?? read(written);
  known.set(written, reading);
  reading.catch(() => known.delete(written));
  return reading;
}
