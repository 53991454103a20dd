import { sh } from "../shell";
import { quick, type Step } from "../step";
import { checkedPath } from "./checked";

export function symlink(path: string, target: string): Step {
  checkedPath(path);
  return {
    id: `path ${path}`,
    want: { type: "symlink", target },
    look: sh`look_path ${path}`,
    save: sh`save_path ${path}`,
    make: sh`put_link ${path} ${target}`,
    undo: sh`restore_path ${path}`,
    keepIfChanged: ["type", "target"],
    onKept: sh`keep_beside ${path};`,
    group: quick,
  };
}
