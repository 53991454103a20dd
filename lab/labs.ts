import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Docker, LAB_LABEL, OWNER_LABEL, docker, dockerLines, releaseDocker } from "./docker.js";
import { readRecord } from "./files.js";
import { BUILD_PREFIX, hasImage, imageTag } from "./image.js";
import { type LabNetwork, closeNetworks } from "./network.js";
import { stopServices } from "./service.js";
import { alive } from "../toolchain/owner.js";

export const DIR_LABEL = "kubexm.lab.dir";

/** A lab as its Docker knows it. */
export interface FoundLab {
  docker: Docker;
  name: string;
  dir: string;
  owner: string;
}

export async function foundLabs(d: Docker): Promise<FoundLab[]> {
  const format = [LAB_LABEL, DIR_LABEL, OWNER_LABEL].map((label) => `{{.Label "${label}"}}`).join("\t");
  const list = (kind: readonly string[]) =>
    dockerLines(d, [...kind, "--filter", `label=${LAB_LABEL}`, "--format", format]);
  const all = [...(await list(["network", "ls"])), ...(await list(["ps", "--all"]))];
  const labs = [...new Set(all)].map((line) => {
    const [name = "", dir = "", owner = ""] = line.split("\t");
    return { docker: d, name, dir, owner };
  });
  return labs.filter((lab, i) => labs.findIndex(({ name }) => name === lab.name) === i);
}

export async function containersOf({ docker: d, name }: FoundLab, running: boolean): Promise<string[]> {
  const all = running ? [] : ["--all"];
  return dockerLines(d, ["ps", ...all, "--filter", `label=${LAB_LABEL}=${name}`, "--format", "{{.Names}}"]);
}

async function networksOf({ docker: d, name }: FoundLab): Promise<LabNetwork[]> {
  const names = await dockerLines(d, [
    "network",
    "ls",
    "--filter",
    `label=${LAB_LABEL}=${name}`,
    "--format",
    "{{.Name}}",
  ]);
  if (names.length === 0) return [];
  const format = `{{.Name}}\t{{(index .IPAM.Config 0).Subnet}}\t{{index .Options "com.docker.network.bridge.name"}}\t{{.Internal}}`;
  return (await dockerLines(d, ["network", "inspect", "--format", format, ...names])).map((line) => {
    const [network = "", subnet = "", bridge = "", internal] = line.split("\t");
    return { name: network, subnet, bridge, closed: internal === "true" };
  });
}

async function removeObjects(lab: FoundLab): Promise<void> {
  const { docker: d } = lab;
  const containers = await containersOf(lab, false);
  await Promise.all(containers.map((name) => docker(d, ["rm", "--force", "--volumes", name])));
  const networks = await networksOf(lab);
  // Root needs no image for it, which may be another version's.
  if (process.getuid?.() === 0 || (await hasImage(d))) await closeNetworks(d, imageTag(), networks);
  if (networks.length === 0) return;
  await docker(d, ["network", "rm", ...networks.map(({ name }) => name)]);
}

/** Takes a lab off the machine, whatever is there of it. Call it under the lab lock. */
export async function removeLab(lab: FoundLab): Promise<void> {
  // A container that was just being made when its maker was stopped can come late, later still on a busy machine.
  await stopServices(lab.dir);
  const later = (ms: number) => () => sleep(ms).then(() => removeObjects(lab));
  await removeObjects(lab).catch(later(1000)).catch(later(4000));
  await rm(lab.dir, { recursive: true, force: true });
}

/** A lab is left over when nobody lives who waits for it, and nobody asked to keep it, or its folder goes. */
async function leftOver(lab: FoundLab, going?: string): Promise<boolean> {
  if (alive(lab.owner)) return false;
  if (going !== undefined && lab.dir.startsWith(`${going}/`)) return true;
  try {
    const record = await readRecord(lab.dir);
    if (record?.lab.name !== lab.name || !record.keep || record.state !== "up") return true;
  } catch {
    // Another user's lab, or a file that cannot be understood: not ours to judge.
    return false;
  }
  return (await containersOf(lab, true)).length === 0;
}

/** Removes what killed runs left. Call it under the lab lock. */
export async function removeLeftOvers(d: Docker, going?: string): Promise<void> {
  // One that does not go must not keep the others from starting: it goes with the lab's Docker, or at the next try.
  for (const lab of await foundLabs(d)) if (await leftOver(lab, going)) await removeLab(lab).catch(() => undefined);
  const builds = await dockerLines(d, ["ps", "--all", "--filter", `name=^${BUILD_PREFIX}`, "--format", "{{.Names}}"]);
  for (const name of builds)
    if (!alive(name.slice(BUILD_PREFIX.length))) await docker(d, ["rm", "--force", "--volumes", name]);
}

/** Removes a lab, and our own Docker with the last one. Call it under the lab lock. */
export async function removeAndRelease(lab: FoundLab): Promise<void> {
  await removeLab(lab);
  await releaseDocker(lab.docker);
}
