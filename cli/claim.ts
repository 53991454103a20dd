import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError, codeOf } from "../toolchain/errors.js";

const PREFIX = "running-";
const ROUNDS = 5;

interface Owner {
  pid: number;
  start: string;
  verb: string;
  since: string;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** When a process began (field 22 of its stat), so that a number used again is not taken for it; "" without /proc. */
function startOf(pid: number): string {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Whether a process with this number exists; a zombie does not count. */
export function pidLives(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
  return !/^State:\s+Z/m.test(textOf(`/proc/${pid}/status`));
}

function read(path: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Owner;
  } catch {
    return undefined;
  }
}

/** The owners of other living runs; the claims of dead ones are removed. */
function others(dir: string, own: string): Owner[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith(PREFIX) && name !== own)
    .flatMap((name) => {
      const path = join(dir, name);
      const owner = read(path);
      if (owner && pidLives(owner.pid) && startOf(owner.pid) === owner.start) return [owner];
      rmSync(path, { force: true });
      return [];
    });
}

/**
 * Only one run changes a cluster's state from this machine at a time. Each run puts down a claim of its own and looks for
 * others: of two that come together at least one sees the other, so there never are two. Gives back how to end the claim.
 */
export async function claim(dir: string, verb: string): Promise<() => void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const name = `${PREFIX}${process.pid}-${randomBytes(3).toString("hex")}`;
  const path = join(dir, name);
  const owner: Owner = { pid: process.pid, start: startOf(process.pid), verb, since: new Date().toISOString() };
  const release = () => rmSync(path, { force: true });
  for (let round = 1; ; round++) {
    // Renamed into place: another run must never read half of it and take it for a dead one's.
    writeFileSync(join(dir, `.${name}`), JSON.stringify(owner), { mode: 0o600 });
    renameSync(join(dir, `.${name}`), path);
    const [other] = others(dir, name);
    if (other === undefined) return release;
    release();
    if (round === ROUNDS)
      throw new UserError(
        `another run works on this cluster: kubexm ${other.verb}, process ${other.pid}, since ${other.since}; wait for its end, or stop it with: kill -INT ${other.pid}`,
      );
    // Two that stepped back before each other try again at different moments.
    await sleep(20 + Math.random() * 100);
  }
}
