import { z } from "zod";
import { openUrl } from "../toolchain/http";

export { openUrl };

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const mirror = z.strictObject({
  url: z.string(),
  replaces: z.string().optional(),
  caPath: z.string().optional(),
  ownChecksums: z.boolean().default(false),
});
export type Mirror = z.output<typeof mirror>;

/** An argument of components that need files: where files come from, and checksums that the catalogue does not have. */
export const sources = z.strictObject({
  mirrors: z.array(mirror).default([]).describe("Rows of mirrors.files of cluster.yaml, in order"),
  checksums: z
    .record(z.string(), sha256)
    .default({})
    .describe("`kubelet/1.35.4/amd64` → sha256, of what a mirror with ownChecksums rebuilt"),
  published: z
    .record(z.string(), sha256)
    .default({})
    .describe("The same of upstream's files that the catalogue has no checksum of, from upstream's checksum files"),
});
export type Sources = z.output<typeof sources>;

/** A login stands in the address. */
export const hasLogin = (address: string): boolean => openUrl(address) !== address;

/** Whether one of the mirrors asks for a login, as the argument then is a secret. */
export const holdLogin = (value: unknown): boolean =>
  sources.safeParse(value).data?.mirrors.some(({ url }) => hasLogin(url)) ?? false;

export interface Address {
  url: string;
  caPath?: string | undefined;
}

const without = (text: string, end: string) => (text.endsWith(end) ? text.slice(0, -end.length) : text);

/** Where a mirror has what is at this address upstream; nothing if it stands for other addresses. */
export function mirrored({ url, replaces, caPath }: Mirror, upstream: string): Address | undefined {
  const base = without(url, "/");
  if (replaces === undefined) return { url: `${base}/${upstream.replace(/^https?:\/\//, "")}`, caPath };
  const begin = `${without(replaces, "/")}/`;
  return upstream.startsWith(begin) ? { url: `${base}/${upstream.slice(begin.length)}`, caPath } : undefined;
}

/** The same file at all mirrors of one kind, in order. */
export const addressesAt = (mirrors: readonly Mirror[], own: boolean, upstream: string): Address[] =>
  mirrors.filter(({ ownChecksums }) => ownChecksums === own).flatMap((mirror) => mirrored(mirror, upstream) ?? []);
