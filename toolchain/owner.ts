import { readFileSync } from "node:fs";
import { codeOf } from "./errors.js";

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return fallback;
  }
}

/** When a process began, so that a number used again is not taken for the same process; "0" where there is no /proc. */
function startOf(pid: number): string {
  const stat = readOr(`/proc/${pid}/stat`, "");
  // The name in field 2 may hold spaces and brackets: count from its end; the state is field 3, the start field 22.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? "ended" : (fields[19] ?? "0");
}

const boot = () => readOr("/proc/sys/kernel/random/boot_id", "0").slice(0, 8);

/** Names this process, or another one that lives, for as long as it lives: `<pid>-<start>-<boot>`. */
export function owner(pid = process.pid): string {
  return `${pid}-${startOf(pid)}-${boot()}`;
}

/** Whether the process of this name still runs; more may follow the name. */
export function alive(claim: string): boolean {
  const [pid = "", start, bootId] = claim.split("-");
  if (bootId !== boot() || startOf(Number(pid)) !== start) return false;
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}
