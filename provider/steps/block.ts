import { createHash } from "node:crypto";
import { ArgumentError } from "../errors";
import { sh, verbatim } from "../shell";
import type { Step } from "../step";
import { checkedPath } from "./checked";

/** Lines of ours inside a file that belongs to others; all else in it stays as it is. */
export function block(path: string, name: string, content: string): Step {
  checkedPath(path);
  if (!/^[A-Za-z0-9 _-]+$/.test(name)) throw new ArgumentError(name, "expected letters, digits, spaces, - and _");
  const text = content === "" || content.endsWith("\n") ? content : `${content}\n`;
  const [begin, end] = [`# BEGIN ${name}`, `# END ${name}`];
  return {
    id: `block ${path} ${name}`,
    want: { recorded: "yes", block: createHash("sha256").update(text).digest("hex") },
    look: sh`look_block ${path} ${begin} ${end}`,
    save: sh`save_block ${path} ${begin}`,
    make: sh`put_block ${path} ${begin} ${end} <<'KX_BLOCK'
${verbatim(text, "KX_BLOCK")}KX_BLOCK`,
    undo: sh`undo_block ${path} ${begin} ${end}`,
    shown: { text },
  };
}
