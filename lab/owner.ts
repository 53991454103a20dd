import { readFileSync } from "node:fs";

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** When a process began: a number that is used again is not the same process. */
function startOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

const boot = () => read("/proc/sys/kernel/random/boot_id").slice(0, 8);

/** Names this process for as long as it lives. */
export const owner = () => `${process.pid}-${startOf(process.pid)}-${boot()}`;

export function alive(claim: string): boolean {
  const [pid = "", start = "", bootId] = claim.split("-");
  return bootId === boot() && start !== "" && startOf(Number(pid)) === start;
}
