import type { LocalFile } from "../provider/steps/payload";
import { bare, type FileName } from "./catalogue";
import { cached, fetchFile, type Tell } from "./fetch";
import type { Sources } from "./sources";
import { wantedFile } from "./wanted";

/** A file that is brought to this machine when a host needs it. */
export interface FetchedFile extends LocalFile {
  ready: (tell: Tell) => Promise<void>;
}

/** The file on this machine, with the checksum it must have. Nothing is fetched before `ready`. */
export function fileFor(name: FileName, version: string, arch: string, from: Sources): FetchedFile {
  const wanted = wantedFile({ name, version: bare(version), arch }, from);
  const { sha256 } = wanted;
  return { path: cached(sha256), sha256, ready: (tell) => fetchFile(wanted, tell) };
}
