import { basename, join } from "node:path";
import { ArgumentError } from "../provider/errors";
import { pinned, pinnedVersions, upstream, type FileId } from "./catalogue";
import { addressesAt, type Address, type Sources } from "./sources";

/** A file whose checksum is known, and where it can be had. */
export interface Wanted extends FileId {
  sha256: string;
  addresses: Address[];
  /** By a mirror with ownChecksums: the checksum is what it said once. */
  rebuilt: boolean;
  /** Where it belongs below the folder of a cluster. */
  place: string;
}

export const keyOf = ({ name, version, arch }: FileId) => `${name}/${version}/${arch}`;

export function wantedFile(id: FileId, { mirrors, checksums, published }: Sources): Wanted {
  const { url, folder } = upstream(id);
  const key = keyOf(id);
  const own = checksums[key];
  const sha256 = own ?? pinned(id) ?? published[key];
  if (sha256 === undefined)
    throw unknownVersion(id, `no checksum of it is known; where hosts are ${id.arch}, write arch: ${id.arch} at them`);
  // What one mirror rebuilt, nobody else has.
  const addresses =
    own === undefined ? [...addressesAt(mirrors, false, url), { url }] : addressesAt(mirrors, true, url);
  return { ...id, sha256, addresses, rebuilt: own !== undefined, place: join(folder, basename(url)) };
}

export function unknownVersion({ name, version, arch }: FileId, why: string): ArgumentError {
  const line = version.split(".").slice(0, 2).join(".");
  const all = pinnedVersions(name);
  const near = all.filter((known) => known.startsWith(`${line}.`));
  const known = (near.length > 0 ? near : all).slice(-15);
  return new ArgumentError(
    version,
    `there is no ${name} of this version for ${arch} (${why}); there are ${known.join(", ")}`,
  );
}
