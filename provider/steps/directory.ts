import { sh } from "../shell";
import type { Step } from "../step";
import { checkedMode, checkedOwner, checkedPath } from "./checked";
import type { FileOptions } from "./file";

/** A folder with this mode and owner; what is in it is not looked at. */
export function directory(path: string, { mode = "0755", owner = "root:root" }: FileOptions = {}): Step {
  checkedPath(path);
  checkedMode(mode);
  const [user, group] = checkedOwner(owner);
  return {
    id: `path ${path}`,
    want: { type: "directory", mode: mode.replace(/^0+(?=.)/, ""), owner: user, group },
    look: sh`look_path ${path}`,
    bulk: { kind: "path", name: path },
    make: sh`need_dir ${path.slice(0, path.lastIndexOf("/")) || "/"}; [ -d ${path} ] || mkdir -- ${path}; chown -- ${owner} ${path}; chmod -- ${mode} ${path}`,
    undo: sh`undo_dir ${path}`,
  };
}
