import { sh } from "../shell";
import type { Step } from "../step";
import { checkedPath } from "./checked";

/** A folder that a service fills by itself; undo empties it of what came since, and never looks through a mount. */
export function data(path: string, mode = "0755"): Step {
  checkedPath(path);
  return {
    id: `data ${path}`,
    want: { type: "directory", recorded: "yes" },
    look: sh`look_data ${path}`,
    save: sh`save_data ${path}`,
    make: sh`need_dir ${path.slice(0, path.lastIndexOf("/")) || "/"}; [ -d ${path} ] || mkdir -m ${mode} -- ${path}`,
    undo: sh`undo_data ${path}`,
  };
}
