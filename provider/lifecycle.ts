import { isDeepStrictEqual } from "node:util";
import { ask } from "./ask";
import {
  defaultsFor,
  knownArguments,
  ownerOf,
  parse,
  pathOf,
  problems,
  stepsOf,
  storedArguments,
  storedCommon,
  workOf,
  type Common,
  type Failure,
  type Parsed,
} from "./arguments";
import type { Definition, FixedWhere } from "./definition";
import type { Context } from "./change";
import { apply, applyKnown, driftOf, revert, type KnownChanges, type LookResult } from "./engine";
import { ArgumentError, RemoteError, UserError, isOfLogin, isUnreachable, textOf } from "./errors";
import { factsOf, otherFacts, unknownFacts, withOs, type Facts } from "./facts";
import { runLog } from "./log";
import { linesOf, lookTogether } from "./looks";
import { differenceOf } from "./meaning";
import { planText } from "./plan";
import { sh } from "./shell";
import type { HostSpec } from "./ssh/spec";
import type { Remote } from "./ssh/remote";
import type { Drift, Step } from "./step";
import { maybeUnknown, unknownPaths } from "./unknown";

/** The number of the shape of what is stored; older shapes stay readable. */
export const schemaVersion = 2;

export type Inputs = Readonly<Record<string, unknown>>;

export interface Outputs {
  readonly [name: string]: unknown;
  readonly schema: number;
  /** As JSON: Pulumi takes a structure apart at every step of every run. Of schema 1 they are the structure itself. */
  readonly facts?: string | Facts;
  readonly drift: readonly Drift[];
  /** Set while a create or an update has not come to its end. */
  readonly incomplete?: boolean;
  /** With `incomplete`: it has been complete before. */
  readonly made?: boolean;
  /** A run that was killed was just taking it back. */
  readonly ending?: boolean;
}

/** What the lifecycle needs from its surroundings. */
export interface World {
  connect: (spec: HostSpec) => Promise<Remote>;
  /** Tells the person something about one resource while it runs. */
  tell: (urn: string, text: string, kind: "status" | "info" | "warning") => void;
  /** Names of hosts whose loss is accepted in this run. */
  forgotten: readonly string[];
  /** What steps of this run made anew, by the names they give it. */
  renewed: Set<string>;
  /** All that there is goes in this run, so that nobody has to be told. */
  ending: boolean;
  controller: string;
}

/** An error after which Pulumi keeps the half-made resource, so that the next run goes on and destroy can revert. */
export class HalfMade extends Error {
  readonly reasons: readonly string[];
  constructor(
    readonly id: string,
    readonly properties: Inputs,
    cause: Error,
  ) {
    super(cause.message, { cause });
    this.reasons = [cause.message];
  }
}

/** The names of host and resource in what is stored. */
export function nameOf(stored: Inputs): { host: string; name: string } {
  const [host, name] = ["host", "resource"].map((key) => (stored[key] as { name?: unknown } | undefined)?.name);
  return { host: typeof host === "string" ? host : "?", name: typeof name === "string" ? name : "?" };
}

/** The id of a resource, the same for the same thing after a lost state. */
export function idOf(kind: string, stored: Inputs): string {
  const { host, name } = nameOf(stored);
  return `${host}/${kind}/${name}`;
}

const isOutputs = (value: Inputs | undefined): value is Outputs => Array.isArray(value?.["drift"]);

/** Facts kept in the state, so that a later look needs no exec to learn them. */
function storedFacts(olds: Inputs | undefined): Facts | undefined {
  const facts = isOutputs(olds) ? olds.facts : undefined;
  return typeof facts === "string" ? (JSON.parse(facts) as Facts) : facts;
}

/** What is stored beside the arguments in any case. */
const shaped = (facts: Facts) => ({ schema: schemaVersion, facts: JSON.stringify(facts) });

const at = (inputs: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((value, key) => (value as Inputs | undefined)?.[key], inputs);

const wasMade = (stored: Inputs | undefined) =>
  isOutputs(stored) && stored.ending !== true && (stored.incomplete !== true || stored.made === true);

/**
 * Told when old and new are compared, as `check` is not given what came of the old. What was only half made may still
 * become something else.
 */
export function refuseFixed({ fixed = {} }: Definition, olds: Inputs, news: Inputs): void {
  if (!wasMade(olds)) return;
  const unknown = unknownPaths(news);
  const changed = Object.entries(fixed).flatMap(([path, rule]) => {
    const { reason, where }: Partial<FixedWhere> = typeof rule === "string" ? { reason: rule } : rule;
    const [was, is] = [at(olds, path), at(news, path)];
    if (maybeUnknown(unknown, path.split(".")) || isDeepStrictEqual(was, is)) return [];
    if (where && !where(was, is, news)) return [];
    return [`${path} cannot be changed any more: ${reason}`];
  });
  if (changed.length > 0) throw new UserError(changed.join("\n"));
}

export function check(
  definition: Definition,
  olds: Inputs | undefined,
  news: Inputs,
): { inputs: Inputs; failures: Failure[] } {
  const failures = problems(definition, news);
  if (failures.length > 0) return { inputs: news, failures };
  if (unknownPaths(news).length > 0) return { inputs: { ...defaultsFor(definition, news), ...news }, failures };
  const parsed = parse(definition, news);
  try {
    workOf(definition, parsed, storedFacts(olds));
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    return { inputs: news, failures: [{ property: pathOf(parsed.args, error.value) ?? "", reason: error.message }] };
  }
  return { inputs: { ...parsed.args, ...parsed.common, __provider: news["__provider"] }, failures: [] };
}

/** What a preview shows, step by step, as far as it is known without the host. */
export function plan(definition: Definition, olds: Inputs | undefined, news: Inputs): string[] {
  const known = knownArguments(definition, news);
  if (!known) return [];
  const { args, unknown } = known;
  const old = isOutputs(olds) ? stepsOfOld(definition, olds) : [];
  const facts = storedFacts(olds);
  const textOn = (on: Facts) => {
    const steps = stepsOf(definition, args, on);
    // What comes of an argument that is not known yet is not taken back.
    const before = unknown.length === 0 ? old : old.filter(({ id }) => steps.some((step) => step.id === id));
    return planText(before, steps, isOutputs(olds) ? olds.drift : []);
  };
  const later = unknown.map((key) => `? what comes of ${key}, which is not known yet`);
  const text = [...textOn(facts ?? unknownFacts), ...later];
  if (facts) return text;
  const other = [...textOn(otherFacts), ...later];
  return isDeepStrictEqual(text, other) ? text : ["as on Debian, until the host has been looked at:", ...text];
}

/** An earlier version may have stored arguments that this one no longer takes; its plan then shows all steps as new. */
function stepsOfOld(definition: Definition, olds: Outputs): readonly Step[] {
  try {
    return workOf(definition, parse(definition, inputsIn(olds)), storedFacts(olds)).steps;
  } catch {
    return [];
  }
}

/** The part of stored outputs that were inputs: this version's own additions left out. */
const additions = ["schema", "facts", "drift", "incomplete", "made", "ending", "revealed"];
const inputsIn = (outs: Inputs): Inputs =>
  Object.fromEntries(Object.entries(outs).filter(([key]) => !additions.includes(key)));

/** What the host tells the program. */
async function revealed({ reveal }: Definition, { args }: Parsed, remote: Remote): Promise<Inputs> {
  if (reveal === undefined) return {};
  return { revealed: (await remote.run(reveal(args), { title: "reveal" })).stdout };
}

export function diff(olds: Inputs): { changes?: boolean } {
  // Without an answer the engine compares the inputs itself, which shows them property by property.
  const { incomplete, ending } = olds;
  return incomplete === true || ending === true || (isOutputs(olds) && olds.drift.length > 0) ? { changes: true } : {};
}

/** What it stands on was made anew in this run, and what it made there is gone. */
export function standsOnNew(definition: Definition, { renewed }: World, olds: Inputs): boolean {
  if (definition.renewedBy === undefined || renewed.size === 0) return false;
  const parsed = storedArguments(definition, inputsIn(olds));
  return parsed !== undefined && renewed.has(definition.renewedBy(parsed.args));
}

function context(world: World, definition: Definition, { resource }: Common): Context {
  return {
    component: `${definition.kind} ${resource.name}`,
    // The same stack waits for its own earlier run (a killed one may still be at work); others are told who is at it.
    holder: {
      id: resource.urn.replaceAll(/\s/g, "_").split("::").slice(0, 2).join("::"),
      run: world.controller,
      component: `${definition.kind} ${resource.name}`,
      patience: 900,
      ending: world.ending,
    },
    connect: world.connect,
    log: runLog(),
    tell: (text) => world.tell(resource.urn, text, "status"),
  };
}

/** What is of the cluster as a whole now stands elsewhere, so its former host only forgets it: the cluster lives on. */
async function releaseFormer(world: World, olds: Inputs, owner: string, ctx: Context): Promise<void> {
  const { host } = storedCommon(inputsIn(olds));
  await world
    .connect(host)
    .then((former) => revert(former, owner, true, ctx))
    .catch((error: unknown) => {
      if (!isUnreachable(error)) throw error;
    });
}

async function converge(
  definition: Definition,
  world: World,
  inputs: Inputs,
  olds: Inputs | undefined,
): Promise<Outputs> {
  const parsed = parse(definition, inputs);
  const { host, resource, rollbackOnFailure } = parsed.common;
  const ctx = context(world, definition, parsed.common);
  const remote = await world.connect(host);
  const facts = await factsOf(remote);
  const before = storedFacts(olds);
  if (before && before.machineId !== facts.machineId && !definition.ofCluster) {
    world.tell(
      resource.urn,
      `${host.name} is another machine than before (${host.address}); the old one was left as it was`,
      "warning",
    );
  }
  const work = workOf(definition, parsed, facts);
  const seen = await lookTogether(remote, work, ctx.holder);
  try {
    const { changed, notes } = await apply(remote, work, seen, ctx);
    for (const { id, renews } of work.steps)
      if (renews !== undefined && changed.includes(id)) world.renewed.add(renews);
    if (definition.ofCluster && olds && before && before.machineId !== facts.machineId)
      await releaseFormer(world, olds, work.owner, ctx);
    return await madeOf(definition, world, inputs, { parsed, remote, facts, notes });
  } catch (error) {
    const cause = error instanceof Error ? error : new Error(String(error));
    if (!rollbackOnFailure || olds !== undefined) throw halfMade(definition, inputs, olds, facts, cause);
    await revert(remote, work.owner, false, ctx).catch((second: unknown) => {
      const also = textOf(second);
      const both = new Error(`${cause.message}\n  it could not be taken back either: ${also}`, { cause });
      throw halfMade(definition, inputs, olds, facts, both);
    });
    throw new Error(`${cause.message}\n  what was done has been taken back (rollbackOnFailure)`, { cause });
  }
}

/** With one exec, where old and new arguments say what is to be done; undefined: one has to look first. */
async function follow(
  definition: Definition,
  world: World,
  inputs: Inputs,
  { changes, olds, facts }: { changes: KnownChanges; olds: Inputs; facts: Facts },
): Promise<Outputs | undefined> {
  const parsed = parse(definition, inputs);
  const remote = await world.connect(parsed.common.host);
  try {
    const done = await applyKnown(remote, changes, context(world, definition, parsed.common));
    return done && (await madeOf(definition, world, inputs, { parsed, remote, facts, notes: done.notes }));
  } catch (error) {
    throw halfMade(definition, inputs, olds, facts, error instanceof Error ? error : new Error(String(error)));
  }
}

/** What is stored of a change that has come to its end. */
async function madeOf(
  definition: Definition,
  world: World,
  inputs: Inputs,
  { parsed, remote, facts, notes }: { parsed: Parsed; remote: Remote; facts: Facts; notes: readonly string[] },
): Promise<Outputs> {
  for (const note of notes) world.tell(parsed.common.resource.urn, note, "warning");
  return { ...inputs, ...shaped(facts), drift: [], ...(await revealed(definition, parsed, remote)) };
}

const halfMade = (definition: Definition, inputs: Inputs, olds: Inputs | undefined, facts: Facts, why: Error) =>
  new HalfMade(
    idOf(definition.kind, inputs),
    {
      ...inputs,
      ...shaped(facts),
      drift: [],
      incomplete: true,
      ...(wasMade(olds) && { made: true }),
    },
    why,
  );

export async function create(
  definition: Definition,
  world: World,
  inputs: Inputs,
): Promise<{ id: string; outs: Outputs }> {
  const outs = await converge(definition, world, inputs, undefined);
  return { id: idOf(definition.kind, inputs), outs };
}

/** A way onto the host that does not work must not take the place of one that does: drift and destroy go by it. */
async function proveLogin(definition: Definition, world: World, olds: Inputs, news: Inputs): Promise<void> {
  if (isDeepStrictEqual(olds["host"], news["host"])) return;
  const remote = await world.connect(parse(definition, news).common.host).catch(notOfLogin);
  await remote?.run(sh`:`, { title: "log in" }).catch(notOfLogin);
}

/** Whether it is right cannot be told of a host that is away. */
function notOfLogin(error: unknown): undefined {
  if (isOfLogin(error)) throw error;
}

export async function update(
  definition: Definition,
  world: World,
  olds: Inputs,
  news: Inputs,
): Promise<{ outs: Outputs }> {
  // What was taken leave of is no longer what it seems to be on its host: it goes first, and comes as new.
  if (isOutputs(olds) && olds.ending === true && definition.farewell) {
    await remove(definition, world, olds);
    return { outs: await converge(definition, world, news, undefined) };
  }
  const settled =
    isOutputs(olds) && olds.incomplete !== true && olds.drift.length === 0 && olds.schema === schemaVersion;
  // Nothing at all is new when the engine mends what a killed run may have left: that needs a look.
  const forced = isDeepStrictEqual(inputsIn(olds), { ...news });
  const facts = storedFacts(olds);
  const changes = settled && !forced ? differenceOf(definition, inputsIn(olds), news, facts) : "unknown";
  if (changes === "nothing") {
    await proveLogin(definition, world, olds, news);
    const kept = Object.entries(olds).filter(([key]) => key === "facts" || key === "revealed");
    return { outs: { ...Object.fromEntries(kept), ...news, schema: schemaVersion, drift: [] } };
  }
  const followed =
    facts && changes !== "unknown" ? await follow(definition, world, news, { changes, olds, facts }) : undefined;
  return { outs: followed ?? (await converge(definition, world, news, olds)) };
}

const unreadable: Drift = {
  step: "arguments",
  want: "those of this version",
  found: "arguments of an earlier version",
};

/** Whether it was only the way that broke: a new one leads there. */
const answers = (world: World, host: HostSpec): Promise<boolean> =>
  world.connect(host).then(
    (remote) =>
      remote.run(sh`:`, { title: "is it there", root: false }).then(
        () => true,
        (error: unknown) => !isUnreachable(error),
      ),
    () => false,
  );

/** What is looked at or taken back is reached as the state says, not as the arguments of today do. */
function ofState(error: unknown): unknown {
  if (!isOfLogin(error)) return error;
  const { advice = "" } = error.failure;
  return new RemoteError(error.summary, {
    ...error.failure,
    advice: `${advice}. This is the login of the last up: where it is written otherwise since, run up without --refresh first`,
  });
}

/** What a look finds. The lines are told and kept nowhere: somebody may have written a password into a file. */
export interface Found {
  readonly outputs: Outputs;
  /** By step. */
  readonly lines: ReadonlyMap<string, readonly string[]>;
}

/** By the facts in the state, unless the host was given another system since. */
async function lookByFacts(
  kept: Facts,
  look: (facts: Facts) => Promise<LookResult>,
): Promise<{ facts: Facts; seen: LookResult }> {
  const seen = await look(kept);
  const facts = withOs(kept, seen.release);
  return { facts, seen: facts === kept ? seen : await look(facts) };
}

/** Looks only. A host that cannot be looked at is an error, never "gone". */
export async function lookAt(definition: Definition, world: World, props: Inputs): Promise<Found> {
  const parsed = storedArguments(definition, inputsIn(props));
  // The next `up` makes it anew.
  if (parsed === undefined)
    return { outputs: { ...props, schema: schemaVersion, drift: [unreadable] }, lines: new Map() };
  const remote = await world.connect(parsed.common.host).catch((error: unknown) => {
    throw ofState(error);
  });
  const { holder } = context(world, definition, parsed.common);
  const { facts, seen } = await lookByFacts(storedFacts(props) ?? (await factsOf(remote)), (known) =>
    lookTogether(remote, workOf(definition, parsed, known), holder),
  );
  const extra = seen.stale.map((id): Drift => ({ step: id, want: "taken back", found: "still there" }));
  return {
    outputs: { ...props, ...shaped(facts), drift: [...driftOf(seen), ...extra] },
    lines: await linesOf(remote, seen),
  };
}

/** What a refresh stores. */
export async function read(definition: Definition, world: World, props: Inputs): Promise<Outputs> {
  const { outputs, lines } = await lookAt(definition, world, props);
  for (const [step, rows] of lines) {
    const { urn } = storedCommon(inputsIn(props)).resource;
    world.tell(urn, [`${step}: found -, wanted +`, ...rows.map((row) => `    ${row}`)].join("\n"), "info");
  }
  return outputs;
}

/** The others are asked first: that a host is gone is no reason for them to keep it. */
async function sayFarewell(definition: Definition, world: World, props: Inputs, lossAccepted: boolean): Promise<void> {
  if (!definition.farewell) return;
  const parsed = storedArguments(definition, inputsIn(props));
  if (parsed === undefined) {
    const { host, resource } = storedCommon(inputsIn(props));
    const text = `no other host could be told that ${host.name} goes: its arguments are of an earlier version`;
    return world.tell(resource.urn, text, "warning");
  }
  const { args, common } = parsed;
  const request = definition.farewell(args, { lost: lossAccepted });
  if (request === undefined) return;
  world.tell(common.resource.urn, request.title, "status");
  try {
    const hosts = request.hosts.filter(({ name }) => !world.forgotten.includes(name));
    const { text, done } = await ask({ ...request, hosts }, world.connect);
    const said = text.reveal();
    if (said !== "") world.tell(common.resource.urn, said, "info");
    await done();
  } catch (error) {
    if (!lossAccepted || !isUnreachable(error)) throw error;
    world.tell(
      common.resource.urn,
      `${error.message}\nnobody else could be told: ${common.host.name} is forgotten as asked`,
      "warning",
    );
  }
}

const GIVEN_UP = "cannot be reached and was forgotten as asked";
/** Is that what is told of a thing that was not taken back. */
export const isGivenUp = (told: string): boolean => told.endsWith(GIVEN_UP);

export async function remove(definition: Definition, world: World, props: Inputs): Promise<void> {
  // Only the ledger says what is to be undone: arguments that this version no longer takes must not stop it.
  const common = storedCommon(inputsIn(props));
  const { host, resource, forget, retain } = common;
  const lossAccepted = forget || world.forgotten.includes(host.name);
  if (!retain && !world.ending) await sayFarewell(definition, world, props, lossAccepted);
  try {
    const remote = await world.connect(host);
    const owner = ownerOf(definition.kind, resource.name);
    const notes = await revert(remote, owner, retain, context(world, definition, common));
    for (const note of notes) world.tell(resource.urn, note, "warning");
  } catch (error) {
    if (!isUnreachable(error)) throw ofState(error);
    if (lossAccepted && (error.failure.reason === "unreachable" || !(await answers(world, host))))
      return world.tell(resource.urn, `${host.name} ${GIVEN_UP}`, "warning");
    throw new RemoteError(error.summary, {
      ...error.failure,
      advice: [
        error.failure.advice,
        `if ${host.name} is gone for good: set forget: true on it, or run with KUBEXM_FORGET=${host.name}`,
      ]
        .filter(Boolean)
        .join("; "),
    });
  }
}
