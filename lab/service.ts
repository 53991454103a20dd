import { spawn } from "node:child_process";
import { open, readFile, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError, codeOf } from "../toolchain/errors.js";
import { alive, owner } from "../toolchain/owner.js";
import type { Lab } from "./files.js";
import type { Mirror } from "./mirror/serve.js";
import { type Service, announceService, readService } from "./service-record.js";

export type MirrorService = Service & Pick<Mirror, "urls" | "caPath">;
export type BalancerService = Service & { address: string };

const END = ".service.json";
const recordOf = (dir: string, name: string) => join(dir, `${name}${END}`);

/** The machine's own address in the lab's network. */
export const gatewayOf = ({ hosts }: Pick<Lab, "hosts">) => (hosts[0]?.address ?? "").replace(/\d+$/, "1");

const command = resolve(__dirname, "..", "..", "bin", "kubexm.js");

/** It has its record from its first moment: whoever takes the lab down finds it, also if we are killed while it gets ready. */
async function start(dir: string, name: string, args: readonly string[]): Promise<void> {
  const record = recordOf(dir, name);
  await rm(record, { force: true });
  const log = await open(join(dir, `${name}.log`), "w", 0o600);
  const all = [command, "lab", name, "serve", ...args, "--record", record];
  const child = spawn(process.execPath, all, { detached: true, stdio: ["ignore", log.fd, log.fd] });
  child.unref();
  await Promise.all([
    log.close(),
    child.pid === undefined ? undefined : announceService(record, { owner: owner(child.pid), starting: true }),
  ]);
}

async function whenServing(dir: string, name: string, signal?: AbortSignal): Promise<Service> {
  for (;;) {
    signal?.throwIfAborted();
    const service = await readService(recordOf(dir, name));
    if (service === undefined)
      throw new UserError(`the lab's ${name} does not start:\n${await readFile(join(dir, `${name}.log`), "utf8")}`);
    if (!service.starting) return service;
    await sleep(100);
  }
}

/** A process of its own that serves a lab until that is taken down: started, or found. One that gets no further is ended. */
async function service(lab: Lab, name: string, args: readonly string[], signal?: AbortSignal): Promise<Service> {
  signal?.throwIfAborted();
  const { dir } = lab;
  const found = (await readService(recordOf(dir, name))) !== undefined;
  if (!found) await start(dir, name, args);
  try {
    return await whenServing(dir, name, signal);
  } catch (error) {
    // What another run has started is that one's to end.
    if (!found) await stop(recordOf(dir, name));
    throw error;
  }
}

/** Serves what a cluster is made of. The parts should be in the cache by now. */
export const mirrorService = (lab: Lab, signal?: AbortSignal): Promise<MirrorService> =>
  service(lab, "mirror", ["--address", gatewayOf(lab)], signal) as Promise<MirrorService>;

/** Stands before the API servers of these hosts. */
export const balancerService = (lab: Lab, to: readonly string[], signal?: AbortSignal): Promise<BalancerService> =>
  service(lab, "balancer", ["--address", gatewayOf(lab), "--to", to.join(",")], signal) as Promise<BalancerService>;

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended in between.
    if (codeOf(error) !== "ESRCH") throw error;
  }
}

async function stop(record: string): Promise<void> {
  const service = await readService(record);
  if (!service) return;
  const pid = Number(service.owner.split("-")[0]);
  signalTo(pid, "SIGTERM");
  for (let tries = 0; tries < 100 && alive(service.owner); tries++) await sleep(100);
  if (alive(service.owner)) signalTo(pid, "SIGKILL");
  await rm(record, { force: true });
}

/** Ends all services of a lab's folder. */
export async function stopServices(dir: string): Promise<void> {
  const names = await readdir(dir).catch(() => [] as string[]);
  await Promise.all(names.filter((name) => name.endsWith(END)).map((name) => stop(join(dir, name))));
}
