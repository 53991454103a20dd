import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

function parents(): Map<number, number> {
  const rows = readdirSync("/proc").flatMap((name): [number, number][] => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const [, parent] = readFileSync(join("/proc", name, "stat"), "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      return [[Number(name), Number(parent)]];
    } catch {
      return [];
    }
  });
  return new Map(rows);
}

/** Kills a process and all it started, whatever groups they are in, as the kernel does when memory runs out for all. */
export function killTree(root: number): number {
  const parentOf = parents();
  const below = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf.get(at))
      if (at === root) return true;
    return false;
  };
  const doomed = [...parentOf.keys()].filter(below);
  for (const pid of doomed) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
  return doomed.length;
}
