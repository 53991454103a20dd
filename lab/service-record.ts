import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { codeOf } from "../toolchain/errors.js";
import { alive } from "../toolchain/owner.js";

/** What is known of a service of a lab, in a file of the lab's folder. */
export interface Service {
  /** The process. */
  owner: string;
  /** It does not serve yet. */
  starting?: boolean;
}

/** By rename: whoever waits for it must never read half of it. */
export async function writeService(record: string, service: Service): Promise<void> {
  const fresh = `${record}.${process.pid}`;
  await writeFile(fresh, JSON.stringify(service));
  await rename(fresh, record);
}

/** For a service just started; what it says itself, perhaps already, is newer. */
export async function announceService(record: string, service: Service): Promise<void> {
  const fresh = `${record}.${process.pid}`;
  await writeFile(fresh, JSON.stringify(service));
  await link(fresh, record).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  await rm(fresh);
}

/** The service that runs, if one does. */
export async function readService(record: string): Promise<Service | undefined> {
  const text = await readFile(record, "utf8").catch(() => "");
  const service = text === "" ? undefined : (JSON.parse(text) as Service);
  return service && alive(service.owner) ? service : undefined;
}
