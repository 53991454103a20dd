// kubexm's provider without Pulumi: what Pulumi's provider process does, in a process of its own.
// node run-provider.js JOB create|read STATE
import "../cli/light-sdk.js";
import { readFileSync, writeFileSync } from "node:fs";
import type { Inputs } from "../provider/lifecycle";
import { closeAll, countConnections } from "../provider/ssh";
import { forKind } from "./component.js";
import type { RoleJob } from "./role-resources.js";

interface Stored {
  kind: string;
  id: string;
  outs: Inputs;
}

/** What such a process tells when it ends. */
export interface ProviderRun {
  loadedMs: number;
  doneMs: number;
  changes: number;
  counters: ReturnType<typeof countConnections>;
}

const json = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"));

const resources = ({ hosts, components }: RoleJob) =>
  hosts.flatMap((host) =>
    Object.entries(components).map(([kind, args]) => {
      const name = `${host.name}-${kind}`;
      const resource = { name, urn: `urn:pulumi:bench::kubexm::pulumi-nodejs:dynamic/kubexm:${kind}::${name}` };
      return { kind, inputs: { ...args, host, resource } };
    }),
  );

async function create({ kind, inputs }: { kind: string; inputs: Inputs }): Promise<Stored> {
  const provider = forKind(kind);
  const checked = await provider.check({}, inputs);
  if (checked.failures.length > 0) throw new Error(JSON.stringify(checked.failures));
  return { kind, ...(await provider.create(checked.inputs)) };
}

async function driftOf({ kind, id, outs }: Stored): Promise<number> {
  const { props } = await forKind(kind).read(id, outs);
  return (props["drift"] as unknown[]).length;
}

async function main([job = "", verb, state = ""]: readonly string[]): Promise<void> {
  const loadedMs = performance.now();
  const changes = await (async () => {
    if (verb === "read") return (await Promise.all((json(state) as Stored[]).map(driftOf))).reduce((a, b) => a + b, 0);
    const made = await Promise.all(resources(json(job) as RoleJob).map(create));
    writeFileSync(state, JSON.stringify(made));
    return made.length;
  })();
  const doneMs = performance.now();
  const told: ProviderRun = { loadedMs, doneMs, changes, counters: countConnections() };
  await closeAll();
  console.log(`\n${JSON.stringify(told)}`);
}

process.env["KUBEXM_PLAN"] = "0";
void main(process.argv.slice(2));
