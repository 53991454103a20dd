import { sh } from "../shell";
import type { LocalFile, Step } from "../step";
import { checkedMode, checkedOwner, checkedPath, checkedSha256 } from "./checked";
import type { FileOptions } from "./file";

export type { LocalFile };

export const bodyOf = (file: LocalFile): LocalFile => ({ ...file, sha256: checkedSha256(file.sha256) });

export interface BinaryOptions extends FileOptions {
  /** It must run on the host and say this, before it takes its place. */
  probe?: { readonly args: readonly string[]; readonly says: string };
}

/** A program, sent apart from the script and checked on the host before it takes its place. */
export function binary(
  path: string,
  source: LocalFile,
  { mode = "0755", owner = "root:root", probe }: BinaryOptions = {},
): Step {
  checkedPath(path);
  checkedMode(mode);
  const [user, group] = checkedOwner(owner);
  return {
    id: `path ${path}`,
    want: { type: "file", sha256: source.sha256, mode: mode.replace(/^0+(?=.)/, ""), owner: user, group },
    look: sh`look_binary ${path}`,
    save: sh`save_path ${path}`,
    make: sh`${probe ? sh`probe_staged ${source.sha256} ${probe.says} ${probe.args}` : sh`:`}
put_staged ${source.sha256} ${path} ${mode} ${owner}`,
    undo: sh`restore_path ${path}`,
    keepIfChanged: ["type", "sha256"],
    onKept: sh`keep_beside ${path};`,
    bodies: [{ ...bodyOf(source), place: path }],
  };
}

export interface ArchiveOptions {
  /** Leading parts of each name to drop. */
  strip?: number;
  /** Only these members, as they are named in the archive. */
  members?: readonly string[];
}

/** The files of a tar archive (any compression the host's tar knows), below a folder. */
export function archive(to: string, source: LocalFile, { strip = 0, members = [] }: ArchiveOptions = {}): Step {
  checkedPath(to);
  return {
    id: `archive ${to} ${members.join(" ")}`.trimEnd(),
    want: { archive: source.sha256 },
    look: sh`look_archive ${to}`,
    make: sh`put_archive ${source.sha256} ${to} ${strip} ${members}`,
    undo: sh`undo_archive ${to}`,
    bodies: [bodyOf(source)],
  };
}
