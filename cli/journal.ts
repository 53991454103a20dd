import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { type Became, type Entry, entriesIn, idOf, isOurs, passphraseIn } from "../resources/provider.js";
import { UserError } from "../toolchain/errors.js";
import type { Resource, StackExport } from "./pending.js";
import { kindOf } from "./report.js";
import { SECRET_MARK, flushState, markOf } from "./state-file.js";

const SECRET = { [SECRET_MARK]: "1b47061264138c4ac30d75fd1eb44270" };
const PROVIDER = "pulumi:providers:pulumi-nodejs";
const OPERATIONS = { create: "creating", update: "updating", delete: "deleting" } as const;

type Properties = Readonly<Record<string, unknown>>;
type Begin = Extract<Entry, { at: "begin" }>;

/** Named in it is the state from which a run sets out. */
export function beginJournal(journal: string, state: string): void {
  writeFileSync(journal, `${markOf(state)}\n`, { mode: 0o600, flush: true });
}

function entriesOf(journal: string, env: Readonly<Record<string, string | undefined>>): Entry[] {
  try {
    return entriesIn(journal, passphraseIn({ ...process.env, ...env }) ?? "");
  } catch (error) {
    throw new UserError(
      `${journal} tells what a run that was killed did on the hosts, and cannot be read: it is damaged, or was written with another passphrase (the file passphrase beside it, or PULUMI_CONFIG_PASSPHRASE). Put that back; or remove the journal, and run up, which goes on from what it finds on the hosts`,
      { cause: error },
    );
  }
}

function unended(entries: readonly Entry[]): Entry[] {
  const open = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.at === "begin") open.set(entry.urn, entry);
    else open.delete(entry.urn);
  }
  return [...open.values()];
}

/**
 * What a run did of which the state does not know; none, mostly. Pulumi writes the state when all is done: then it is another
 * than the one from which the run set out, and lacks only what has no end, as of a provider that was killed Pulumi takes what
 * was under way for not begun.
 */
export function lostOf(
  journal: string,
  state: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly Entry[] {
  if (!existsSync(journal)) return [];
  const entries = entriesOf(journal, env);
  const [mark = ""] = readFileSync(journal, "utf8").split("\n", 1);
  return mark === markOf(state) ? entries : unended(entries);
}

/** After a run: it goes where the state knows all of it. What cannot be read now, the next run tells. */
export function endJournal(...[journal, state, env]: Parameters<typeof lostOf>): void {
  try {
    if (!existsSync(journal) || lostOf(journal, state, env).length > 0) return;
    // Pulumi leaves it to the system when that comes to the disk.
    flushState(state);
    rmSync(journal);
  } catch {
    // It stays.
  }
}

const wrapped = (props: Properties, secret: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(props).map(([key, value]) =>
      secret.includes(key) && value !== undefined
        ? [key, { ...SECRET, plaintext: JSON.stringify(value) }]
        : [key, value],
    ),
  );

interface Ended {
  urn: string;
  begin: number;
  end: number;
}

/** All that had ended when something began may be what it stands on; what those stand on themselves need not be named. */
function before(ended: readonly Ended[]): string[] {
  const latest = Math.max(-1, ...ended.map(({ begin }) => begin));
  return ended.filter(({ end }) => end > latest).map(({ urn }) => urn);
}

/** Those on which no other stands: what stands on them stands on all. */
function topmost(resources: readonly Resource[]): string[] {
  const stoodOn = new Set(resources.flatMap(({ dependencies = [] }) => dependencies));
  return resources.filter((resource) => isOurs(resource) && !stoodOn.has(resource.urn)).map(({ urn }) => urn);
}

const typeOf = (urn: string) => (urn.split("::")[2] ?? "").split("$").at(-1) ?? "";

/** The one that Pulumi makes by itself for all of ours. */
function providerIn(resources: Resource[], urn: string): string {
  const name = urn.split("::").slice(0, 2).join("::");
  const known = resources.find(({ type }) => type === PROVIDER);
  const provider = known ?? { urn: `${name}::${PROVIDER}::default`, custom: true, id: randomUUID(), type: PROVIDER };
  if (!known) resources.push(provider);
  return `${provider.urn}::${provider.id ?? ""}`;
}

/** What is no longer there, is not there for others either. */
function without(resources: readonly Resource[], gone: ReadonlySet<string>): Resource[] {
  if (gone.size === 0) return [...resources];
  return resources
    .filter(({ urn }) => !gone.has(urn))
    .map(({ dependencies = [], ...rest }) => ({
      ...rest,
      dependencies: dependencies.filter((urn) => !gone.has(urn)),
      // By which argument it stood on others nobody asks before the next run, which tells it anew.
      propertyDependencies: {},
    }));
}

/** What Pulumi marks so is gone, to be made anew: of one that is there again, it would only forget it. */
const replaced = { pendingReplacement: undefined };

/** As it was, with what came of it. */
function changed(was: Resource, { op, inputs, secret }: Begin, became: Extract<Became, { outs: unknown }>): Resource {
  const outputs = wrapped(became.outs, secret);
  const initErrors = became.what === "half" ? [...became.reasons] : [];
  // Of an update that failed, Pulumi keeps what was wanted before.
  if (became.what === "half" && op === "update") return { ...was, outputs, initErrors };
  return { ...was, ...replaced, inputs: wrapped(inputs, secret), outputs, initErrors };
}

/** It went before, and nothing is known yet of what comes in its place. */
function begunAnew(was: Resource, { inputs, secret }: Begin): Resource {
  const props = wrapped(inputs, secret);
  return { ...was, ...replaced, inputs: props, outputs: { ...props, incomplete: true } };
}

/**
 * The state as Pulumi would have written it, had the run not been killed: what ended is as it became, and what had begun is
 * pending. Its order is that of the run: a resource stands on all that had ended when it began, which holds as well.
 */
export function withJournal(state: StackExport, entries: readonly Entry[], salt: string | undefined): StackExport {
  const { pending_operations: pending = [], ...deployment } = state.deployment;
  const resources = [...(deployment.resources ?? [])];
  const places = new Map(resources.map(({ urn }, place) => [urn, place]));
  const roots = topmost(resources);
  /** What comes again keeps its place: others still stand on it. */
  const gone = new Set<string>();
  const open = new Map<string, { begin: Begin; at: number; below: string[] }>();
  const ended: Ended[] = [];
  const find = (urn: string) => resources[places.get(urn) ?? -1];
  const put = (resource: Resource) => {
    const place = places.get(resource.urn) ?? resources.length;
    places.set(resource.urn, place);
    resources[place] = resource;
    gone.delete(resource.urn);
  };
  const fresh = ({ urn, inputs, secret }: Begin, below: readonly string[]): Resource => ({
    urn,
    custom: true,
    id: idOf(kindOf(typeOf(urn)), inputs),
    type: typeOf(urn),
    inputs: wrapped(inputs, secret),
    provider: providerIn(resources, urn),
    dependencies: below.filter((other) => places.has(other)),
  });
  for (const [at, entry] of entries.entries()) {
    if (entry.at === "begin") {
      open.set(entry.urn, { begin: entry, at, below: [...new Set([...roots, ...before(ended)])] });
      continue;
    }
    const { urn, became } = entry;
    const begun = open.get(urn);
    open.delete(urn);
    if (!begun || became.what === "unchanged") continue;
    if (became.what === "gone") {
      gone.add(urn);
      continue;
    }
    put(changed(find(urn) ?? fresh(begun.begin, begun.below), begun.begin, became));
    ended.push({ urn, begin: begun.at, end: at });
  }
  for (const { begin } of open.values()) {
    const was = find(begin.urn);
    if (was && begin.op === "create") put(begunAnew(was, begin));
  }
  // A Pulumi that was stopped at once has told of some itself.
  const told = new Set(pending.map(({ resource }) => resource.urn));
  const left = [...open.values()]
    .filter(({ begin }) => !told.has(begin.urn))
    .map(({ begin, below }) => ({
      resource:
        find(begin.urn) ??
        fresh(
          begin,
          below.filter((urn) => !gone.has(urn)),
        ),
      type: OPERATIONS[begin.op],
    }));
  const secrets = salt === undefined ? {} : { secrets_providers: { type: "passphrase", state: { salt } } };
  return {
    ...state,
    deployment: {
      ...secrets,
      ...deployment,
      resources: without(resources, gone),
      pending_operations: [...pending, ...left],
    },
  };
}

/** Of a stack that has no state yet, only its configuration knows it. */
export function saltIn(config: string): string | undefined {
  if (!existsSync(config)) return undefined;
  const { encryptionsalt: salt } = (parse(readFileSync(config, "utf8")) ?? {}) as { encryptionsalt?: string };
  return salt;
}
