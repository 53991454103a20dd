import assert from "node:assert/strict";
import { labExec, type LabHost } from "../../lab/hosts";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import type { Context } from "../../provider/change";
import { apply, driftOf, look, revert, type LookResult } from "../../provider/engine";
import { linesOf } from "../../provider/looks";
import type { Work } from "../../provider/script";
import { Command } from "../../provider/shell";
import type { Remote } from "../../provider/ssh/remote";
import type { Step } from "../../provider/step";
import { changesOn } from "./machine-wide";

/** One row of the table: what a step does to a real host, and that nothing of it stays. */
export interface StepCase {
  readonly name: string;
  readonly steps: readonly (Step | readonly Step[])[];
  /** Makes the host interesting first; part of the state that has to come back. */
  readonly given?: string;
  /** Exits 0 when the wanted effect is there. */
  readonly holds: string;
  /** Changes by hand, each with the id of the step that must notice it, and the lines that are told of it. */
  readonly drifts: readonly { by: string; step: string; lines?: readonly string[] }[];
  /** Other steps under the same name afterwards, and what must hold then. */
  readonly then?: { steps: readonly (Step | readonly Step[])[]; holds: string };
}

/** Shell text written by hand: only tests may. */
export const raw = (text: string) => new Command(text, text);

export const work = (owner: string, steps: StepCase["steps"]): Work => ({ owner, steps: steps.flat() });

export const context = (component: string): Context => ({
  component,
  holder: { id: "test", run: "a test", component, patience: 60 },
  connect: () => Promise.reject(new Error("this step asks nobody")),
  log: () => undefined,
  tell: () => undefined,
});

async function looked(remote: Remote, wanted: Work): Promise<LookResult> {
  const [seen] = await look(remote, [wanted]);
  assert.ok(seen);
  return seen;
}

export const converge = async (remote: Remote, wanted: Work): Promise<readonly string[]> =>
  (await apply(remote, wanted, await looked(remote, wanted), context(wanted.owner))).changed;

const stepsOf = (seen: LookResult) => driftOf(seen).map(({ step }) => step);

export const differing = async (remote: Remote, wanted: Work): Promise<readonly string[]> =>
  stepsOf(await looked(remote, wanted));

const must = (remote: Remote, script: string) => remote.run(raw(script), { title: script });

/** apply → holds → apply again: no change → each drift seen and healed → (changed) → revert. */
export async function walk(remote: Remote, { name, steps, holds, drifts, then }: StepCase): Promise<void> {
  const wanted = work(`case.${name.replaceAll(/\W+/g, "-")}`, steps);
  const changed = await converge(remote, wanted);
  assert.notDeepEqual(changed, [], "the first apply changes something");
  await must(remote, holds);
  assert.deepEqual(await converge(remote, wanted), [], "a second apply changes nothing");
  for (const { by, step, lines } of drifts) {
    await must(remote, by);
    const seen = await looked(remote, wanted);
    assert.ok(stepsOf(seen).includes(step), `after \`${by}\` a look must name ${step}`);
    if (lines) assert.deepEqual((await linesOf(remote, seen)).get(step), lines);
    await converge(remote, wanted);
    await must(remote, holds);
    assert.deepEqual(await differing(remote, wanted), [], `healed after \`${by}\``);
  }
  if (then) {
    await converge(remote, work(wanted.owner, then.steps));
    await must(remote, then.holds);
  }
  await revert(remote, wanted.owner, false, context(wanted.owner));
  assert.deepEqual(await revert(remote, wanted.owner, false, context(wanted.owner)), [], "reverting twice is fine");
  await must(remote, "test ! -e /var/lib/kubexm");
}

/** For what must leave a host as it was. Where nothing is set up first, the last snapshot is that from before the next. */
export function leftAsBefore(host: () => LabHost) {
  let clean: Snapshot | undefined;
  return async (given: string | undefined, act: () => Promise<void>) => {
    if (given !== undefined) await labExec(host(), given);
    const before = given === undefined && clean ? clean : await snapshot(host());
    clean = undefined;
    await act();
    const now = await snapshot(host());
    assert.equal(changesOn(before, now), "");
    clean = now;
  };
}
