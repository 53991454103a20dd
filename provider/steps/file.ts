import { createHash } from "node:crypto";
import { sh, Command, Secret, quote } from "../shell";
import type { Step } from "../step";
import { checkedMode, checkedOwner, checkedPath } from "./checked";

export interface FileOptions {
  /** Four octal digits, e.g. `0644` (default). */
  mode?: string;
  /** `user:group`, default root:root. */
  owner?: string;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** What the shell itself may print: starting a program for it takes ten times as long. */
const MOST_PRINTED = 16 * 1024;

/** The command that prints the content, with no byte of it read as shell. */
function printing(content: string | Secret): Command {
  const text = content instanceof Secret ? content.reveal() : content;
  const shown = content instanceof Secret ? "***" : `(${Buffer.byteLength(text)} bytes)`;
  const carried = (written: string) =>
    new Command(written, shown, content instanceof Secret ? [text, quote(text)] : []);
  if (text.length <= MOST_PRINTED && !text.includes("\0")) return sh`printf %s ${carried(quote(text))}`;
  const encoded = Buffer.from(text)
    .toString("base64")
    .replaceAll(/.{1,4096}/g, "$&\n");
  return sh`base64 -d <<'KX_CONTENT'
${carried(encoded)}
KX_CONTENT`;
}

/** A file with exactly this content. */
export function file(path: string, content: string | Secret, options: FileOptions = {}): Step {
  const { mode = "0644", owner = "root:root" } = options;
  checkedPath(path);
  checkedMode(mode);
  const [user, group] = checkedOwner(owner);
  const text = content instanceof Secret ? content.reveal() : content;
  return {
    id: `path ${path}`,
    want: { type: "file", sha256: sha256(text), mode: mode.replace(/^0+(?=.)/, ""), owner: user, group },
    look: sh`look_path ${path}`,
    bulk: { kind: "path", name: path },
    save: sh`save_path ${path}`,
    make: sh`put_file ${path} ${mode} ${owner} ${printing(content)}
after_unit_file ${path}`,
    undo: sh`restore_path ${path}; after_unit_file ${path}`,
    keepIfChanged: ["type", "sha256"],
    onKept: sh`keep_beside ${path};`,
    shown: { text, secret: content instanceof Secret },
    content: sh`tell_file ${path}`,
    secret: content instanceof Secret,
  };
}
