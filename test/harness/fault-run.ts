import assert from "node:assert/strict";
import { labExec, type LabHost } from "../../lab/hosts";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import type { Inputs } from "../../provider/lifecycle";
import { holds } from "./fault-box";
import { changesOn } from "./machine-wide";
import { here } from "./provider-process";
import { changesOf, quickState, type QuickState } from "./quick-state";

/** What a fault did, counted over its tries. */
export interface Tally {
  tried: number;
  /** How often the fault really struck. */
  struck: number;
  converged: number;
  reverted: number;
}

export const tally = (): Tally => ({ tried: 0, struck: 0, converged: 0, reverted: 0 });

/** A line of docs/reliability.md, for whoever fills it in again. */
export const tell = (fault: string, { tried, struck, converged, reverted }: Tally) =>
  console.log(`| ${fault} | ${tried} (struck ${struck}) | ${converged} | ${reverted} |`);

/** The next run converges without help. */
export async function converges(host: LabHost, inputs: Inputs, olds?: Inputs): Promise<Inputs> {
  const { outs, error } = await here(olds ? { verb: "update", olds, news: inputs } : { verb: "create", inputs });
  assert.ok(outs, error);
  const { version, folder } = inputs;
  await labExec(host, holds(String(version), typeof folder === "string" ? folder : undefined));
  return outs;
}

/** Destroy gives the host back. */
export async function reverts(host: LabHost, before: QuickState, props: Inputs): Promise<void> {
  const { error } = await here({ verb: "delete", props });
  assert.equal(error, undefined);
  assert.equal(changesOf(before, await quickState(host)), "");
}

/** Works through a list on all hosts at once; each host takes the next as soon as it is free. */
export async function onHosts<T>(
  hosts: readonly LabHost[],
  items: readonly T[],
  each: (host: LabHost, item: T, i: number) => Promise<void>,
): Promise<void> {
  const queue = items.map((item, i) => ({ item, i }));
  const work = async (host: LabHost) => {
    for (let next = queue.shift(); next; next = queue.shift()) await each(host, next.item, next.i);
  };
  await Promise.all(hosts.map(work));
}

/** What is otherwise than in a whole snapshot; empty when the host is as it was. */
export const changedSince = async (before: Snapshot, host: LabHost): Promise<string> =>
  changesOn(before, await snapshot(host));
