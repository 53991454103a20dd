import { spawn } from "node:child_process";
import { open, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../toolchain/errors.js";
import { alive } from "../../toolchain/owner.js";
import type { Lab } from "../files.js";
import type { Mirror } from "./serve.js";

/** A mirror in a process of its own, which serves a lab until that is taken down. */
export interface MirrorService extends Pick<Mirror, "urls" | "caPath"> {
  /** The process. */
  owner: string;
}

export const servicePath = (dir: string) => join(dir, "mirror.json");

async function running(dir: string): Promise<MirrorService | undefined> {
  const text = await readFile(servicePath(dir), "utf8").catch(() => "");
  const service = text === "" ? undefined : (JSON.parse(text) as MirrorService);
  return service && alive(service.owner) ? service : undefined;
}

/** The machine's own address in the lab's network. */
export const gatewayOf = ({ hosts }: Pick<Lab, "hosts">) => (hosts[0]?.address ?? "").replace(/\d+$/, "1");

const command = resolve(__dirname, "..", "..", "..", "bin", "kubexm.js");

async function start(lab: Lab): Promise<() => boolean> {
  const log = await open(join(lab.dir, "mirror.log"), "w", 0o600);
  const args = [command, "lab", "mirror", "serve", "--address", gatewayOf(lab), "--record", servicePath(lab.dir)];
  const child = spawn(process.execPath, args, { detached: true, stdio: ["ignore", log.fd, log.fd] });
  child.unref();
  await log.close();
  return () => child.exitCode === null && child.signalCode === null;
}

/** Starts it, or finds the one that runs. The parts should be in the cache by now. */
export async function mirrorService(lab: Lab, signal?: AbortSignal): Promise<MirrorService> {
  const there = await running(lab.dir);
  if (there) return there;
  const lives = await start(lab);
  for (;;) {
    signal?.throwIfAborted();
    const service = await running(lab.dir);
    if (service) return service;
    if (!lives())
      throw new UserError(`the mirror does not start:\n${await readFile(join(lab.dir, "mirror.log"), "utf8")}`);
    await sleep(100);
  }
}

/** Ends the mirror of a lab's folder, if there is one. */
export async function stopService(dir: string): Promise<void> {
  const service = await running(dir);
  if (!service) return;
  const pid = Number(service.owner.split("-")[0]);
  process.kill(pid, "SIGTERM");
  for (let tries = 0; tries < 100 && alive(service.owner); tries++) await sleep(100);
  if (alive(service.owner)) process.kill(pid, "SIGKILL");
  await rm(servicePath(dir), { force: true });
}
