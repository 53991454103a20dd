import { createHash } from "node:crypto";
import { ArgumentError } from "../errors";
import { sh } from "../shell";
import { quick, type Step } from "../step";
import { checkedPath } from "./checked";

/** Lines of ours inside a file that belongs to others; all else in it stays as it is. */
export function block(path: string, name: string, content: string): Step {
  checkedPath(path);
  if (!/^[A-Za-z0-9 _-]+$/.test(name)) throw new ArgumentError(name, "expected letters, digits, spaces, - and _");
  const text = content === "" || content.endsWith("\n") ? content : `${content}\n`;
  const [begin, end] = [`# BEGIN ${name}`, `# END ${name}`];
  const marker = text.split("\n").find((line) => line === begin || line === end);
  if (marker !== undefined) throw new ArgumentError(content, `the line ${marker} marks where the block begins or ends`);
  const sum = createHash("sha256").update(text).digest("hex");
  return {
    id: `block ${path} ${name}`,
    want: { recorded: "yes", block: sum },
    look: sh`look_block ${path} ${begin} ${end}`,
    save: sh`save_block ${path} ${begin} ${end}`,
    make: sh`put_block ${path} ${begin} ${end} ${text}`,
    undo: sh`undo_block ${path} ${begin} ${end}`,
    shown: { text },
    content: sh`tell_block ${path} ${begin} ${end}`,
    group: quick,
  };
}
