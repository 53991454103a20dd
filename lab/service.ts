import { spawn } from "node:child_process";
import { open, readFile, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../toolchain/errors.js";
import { alive } from "../toolchain/owner.js";
import type { Lab } from "./files.js";
import type { Mirror } from "./mirror/serve.js";

/** What a service of a lab tells in its record, as soon as it serves. */
interface Service {
  /** The process. */
  owner: string;
}

export type MirrorService = Service & Pick<Mirror, "urls" | "caPath">;
export type BalancerService = Service & { address: string };

const END = ".service.json";
const recordOf = (dir: string, name: string) => join(dir, `${name}${END}`);

async function running(record: string): Promise<Service | undefined> {
  const text = await readFile(record, "utf8").catch(() => "");
  const service = text === "" ? undefined : (JSON.parse(text) as Service);
  return service && alive(service.owner) ? service : undefined;
}

/** The machine's own address in the lab's network. */
export const gatewayOf = ({ hosts }: Pick<Lab, "hosts">) => (hosts[0]?.address ?? "").replace(/\d+$/, "1");

const command = resolve(__dirname, "..", "..", "bin", "kubexm.js");

async function start(dir: string, name: string, args: readonly string[]): Promise<() => boolean> {
  const log = await open(join(dir, `${name}.log`), "w", 0o600);
  const all = [command, "lab", name, "serve", ...args, "--record", recordOf(dir, name)];
  const child = spawn(process.execPath, all, { detached: true, stdio: ["ignore", log.fd, log.fd] });
  child.unref();
  await log.close();
  return () => child.exitCode === null && child.signalCode === null;
}

/** A process of its own that serves a lab until that is taken down: started, or found. */
async function service(lab: Lab, name: string, args: readonly string[], signal?: AbortSignal): Promise<Service> {
  const record = recordOf(lab.dir, name);
  const there = await running(record);
  if (there) return there;
  const lives = await start(lab.dir, name, args);
  for (;;) {
    signal?.throwIfAborted();
    const begun = await running(record);
    if (begun) return begun;
    if (!lives())
      throw new UserError(`the lab's ${name} does not start:\n${await readFile(join(lab.dir, `${name}.log`), "utf8")}`);
    await sleep(100);
  }
}

/** Serves what a cluster is made of. The parts should be in the cache by now. */
export const mirrorService = (lab: Lab, signal?: AbortSignal): Promise<MirrorService> =>
  service(lab, "mirror", ["--address", gatewayOf(lab)], signal) as Promise<MirrorService>;

/** Stands before the API servers of these hosts. */
export const balancerService = (lab: Lab, to: readonly string[], signal?: AbortSignal): Promise<BalancerService> =>
  service(lab, "balancer", ["--address", gatewayOf(lab), "--to", to.join(",")], signal) as Promise<BalancerService>;

async function stop(record: string): Promise<void> {
  const service = await running(record);
  if (!service) return;
  const pid = Number(service.owner.split("-")[0]);
  process.kill(pid, "SIGTERM");
  for (let tries = 0; tries < 100 && alive(service.owner); tries++) await sleep(100);
  if (alive(service.owner)) process.kill(pid, "SIGKILL");
  await rm(record, { force: true });
}

/** Ends all services of a lab's folder. */
export async function stopServices(dir: string): Promise<void> {
  const names = await readdir(dir).catch(() => [] as string[]);
  await Promise.all(names.filter((name) => name.endsWith(END)).map((name) => stop(join(dir, name))));
}
