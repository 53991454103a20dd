import type { DiagnosticEvent, EngineEvent, StepEventMetadata } from "@pulumi/pulumi/automation";
import { isDeepStrictEqual } from "node:util";
import { isGivenUp } from "../resources/provider.js";
import type { PulumiVerb } from "./flags.js";
import { type Screen, paint } from "./screen.js";
import { SECRET_MARK } from "./state-file.js";
import { type Counts, FOUND, OPS, noCounts, seconds } from "./words.js";

const STACK = "pulumi:pulumi:Stack";
/** Said of our own tool folder, which is on PATH on purpose. */
const NOISE = /^using pulumi-resource-\S+ from \$PATH/;
const INDENT = "      ";

type Properties = Record<string, unknown>;

const isRecord = (value: unknown): value is Properties => typeof value === "object" && value !== null;

/** The last part of a type, as the manual calls the component: `Chrony`. */
export const kindOf = (type: string) => type.slice(type.lastIndexOf(":") + 1);

const nameOf = (urn: string) => urn.slice(urn.lastIndexOf("::") + 2);

/** The host a resource works on; what works on none is shown by its name. */
export function hostOf({ urn, old, new: now }: StepEventMetadata): string {
  const host: unknown = (now ?? old)?.inputs["host"];
  if (typeof host === "string") return host;
  return isRecord(host) && typeof host["name"] === "string" ? host["name"] : nameOf(urn);
}

/** The component, and the node that it is about where that is another than the host it works on. */
function labelOf({ type, old, new: now }: StepEventMetadata): string {
  const node: unknown = (now ?? old)?.inputs["node"];
  return typeof node === "string" ? `${kindOf(type)} ${node}` : kindOf(type);
}

/** The arguments that differ, by name. */
export function changedKeys({ op, old, new: now }: StepEventMetadata): string[] {
  if (op !== "update" && op !== "replace") return [];
  const [before, after]: Properties[] = [old?.inputs ?? {}, now?.inputs ?? {}];
  return Object.keys({ ...before, ...after })
    .filter((key) => !key.startsWith("__") && !isDeepStrictEqual(before?.[key], after?.[key]))
    .sort();
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What the last look found otherwise than wanted, a line each. */
export function driftOf({ op, old, new: now }: StepEventMetadata, verb: PulumiVerb): string[] {
  const state = verb === "refresh" ? now : op === "update" ? old : undefined;
  const drift: unknown = state?.outputs["drift"];
  if (!Array.isArray(drift)) return [];
  return drift
    .filter(isRecord)
    .map(({ step, want, found }) => `drift: ${shown(step)}: want ${shown(want)}, found ${shown(found)}`);
}

/** Pulumi's wrapping of one reason taken off, line ends in order. */
export function plainMessage(message: string): string {
  return message
    .replace(/^Preview failed: /, "")
    .replace(/^\d+ errors? occurred:\n/, "")
    .replaceAll(/^\t\* /gm, "")
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .join("\n");
}

export function hasSecret(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return SECRET_MARK in value || Object.values(value).some(hasSecret);
}

/** A resource in the work, from its first event to its last. */
interface Work {
  host: string;
  kind: string;
  since: number;
  doing: string;
}

export interface Result {
  counts: Counts;
  /** So many of the failed only looked. */
  failedLooks: number;
  /** Of the stack, secret ones left out. */
  outputs: Properties;
  problems: number;
}

export interface Report {
  event(event: EngineEvent): void;
  end(): Result;
}

export interface ReportOptions {
  verb: PulumiVerb;
  plan: boolean;
  screen: Screen;
  /** One entry per finished resource, for the log of the run. */
  log: (entry: Record<string, unknown>) => void;
}

/** Tells a person what the engine does: a line per resource that changes, with its messages under it. */
export function report({ verb, plan, screen, log }: ReportOptions): Report {
  const counts = noCounts();
  let failedLooks = 0;
  const atWork = new Map<string, Work>();
  /** What was said of a resource and not printed yet. A plan is told before the engine begins with the resource. */
  const notes = new Map<string, string[]>();
  /** Errors, and whether they were printed: a host that is away is the same error at each of its resources. */
  const errors = new Map<string, boolean>();
  const said = new Set<string>();
  let outputs: Properties = {};
  let problems = 0;
  let stackUrn = "";
  const planned: { host: string; urn: string; line: string }[] = [];

  const print = (lines: readonly string[]) => {
    for (const line of lines) screen.print(line);
  };
  const say = (text: string) => (plan ? planned.push({ host: "", urn: "", line: text }) : screen.print(text));
  /** A resource's line, with what was said of it under it; an error that stands further up is only named. */
  const withNotes = (urn: string, line: string, found: readonly string[] = []): string[] => {
    const texts = notes.get(urn) ?? [];
    notes.delete(urn);
    const again = texts.filter((text) => errors.get(text)).map((text) => text.split("\n", 1));
    const fresh = texts.filter((text) => !errors.get(text) && !(isGivenUp(text) && said.has(text)));
    for (const text of fresh) if (errors.has(text)) errors.set(text, true);
    for (const text of fresh.filter(isGivenUp)) said.add(text);
    const head = again.length === 0 ? line : `${line.replace(/:$/, "")}: as above (${again.join("; ")})`;
    return [head, ...[...found, ...fresh.flatMap((text) => text.split("\n"))].map((text) => INDENT + text)];
  };

  screen.live(() => {
    const hosts = new Map<string, string[]>();
    for (const { host, kind, doing, since } of atWork.values())
      hosts.set(host, [...(hosts.get(host) ?? []), `${kind} ${doing} ${seconds(Date.now() - since)}`]);
    return [...hosts].map(([host, works]) => `${host}: ${works.join(", ")}`);
  });

  function begin(metadata: StepEventMetadata): Work {
    const work: Work = {
      host: hostOf(metadata),
      kind: labelOf(metadata),
      since: Date.now(),
      doing: OPS[metadata.op]?.doing ?? metadata.op,
    };
    atWork.set(metadata.urn, work);
    return work;
  }

  function finish(metadata: StepEventMetadata, failed: boolean): void {
    const { urn, op: name } = metadata;
    const work = atWork.get(urn) ?? begin(metadata);
    const op = OPS[name];
    atWork.delete(urn);
    // The look before a preview or an up is no change; what it found stands under the change that heals it.
    if (op === undefined || (name === "refresh" && !failed)) return;
    // With --target Pulumi calls a create that it leaves out "same", of a resource that has no id yet.
    if (name === "same" && metadata.new?.id === "") return;
    const givenUp = op.counts === "removed" && !failed && (notes.get(urn) ?? []).some(isGivenUp);
    const count = failed ? "failed" : givenUp ? "given up" : op.counts;
    if (count) counts[count]++;
    if (failed && name === "refresh") failedLooks++;
    if (count === "unchanged" && !notes.has(urn)) return;
    const ms = Date.now() - work.since;
    log({ urn, op: name, ms, ...(failed && { failed: notes.get(urn)?.join("\n") }) });
    const what = failed
      ? `failed after ${seconds(ms)}`
      : plan
        ? op.plan
        : verb === "refresh"
          ? FOUND[name]
          : `${givenUp ? "given up" : op.done} in ${seconds(ms)}`;
    const sign = failed ? "!" : op.sign;
    const colour = { "+": "green", "~": "yellow", "±": "yellow", "-": "red", "!": "red", " ": "reset" } as const;
    const keys = changedKeys(metadata);
    const line = [work.host.padEnd(10), paint(colour[sign], sign), work.kind.padEnd(18), what, keys.join(", ")]
      .join(" ")
      .trimEnd();
    // What is said of a plan may come after the engine is done with the resource: it is put together at the end.
    if (plan) planned.push({ host: work.host, urn, line });
    else print(withNotes(urn, line, driftOf(metadata, verb)));
  }

  function diagnose({ urn, message, severity, ephemeral }: DiagnosticEvent): void {
    // The engine's own severity for what --debug would show is not in the SDK's type.
    if ((severity as string) === "debug" || NOISE.test(message)) return;
    const text = plainMessage(message);
    // What the provider writes to stderr is the stack of an error that its resource tells anyway.
    if (severity === "info#err") return log({ stderr: text });
    if (ephemeral) {
      const work = atWork.get(urn ?? "");
      if (work) work.doing = text;
      return;
    }
    // "update failed" says nothing that the failed resources, or Pulumi's last words, do not say.
    if (text === "" || /^\w+ (failed|canceled)$/.test(text)) return;
    if (severity === "error") {
      problems++;
      errors.set(text, errors.get(text) ?? false);
    }
    const word = severity === "warning" ? "warning: " : "";
    if (urn !== undefined && urn !== stackUrn) {
      const earlier = notes.get(urn) ?? [];
      if (!earlier.includes(word + text)) notes.set(urn, [...earlier, word + text]);
      return;
    }
    if ([...said].some((earlier) => earlier.includes(text))) return;
    said.add(text);
    say(`${severity === "error" ? "error: " : word}${text}`);
  }

  function step(metadata: StepEventMetadata, end: boolean, failed: boolean): void {
    const state = metadata.new ?? metadata.old;
    if (metadata.type === STACK) {
      stackUrn = metadata.urn;
      if (end && metadata.new) outputs = metadata.new.outputs;
    }
    if (!state?.custom || metadata.type.startsWith("pulumi:providers:")) return;
    if (end) finish(metadata, failed);
    else begin(metadata);
  }

  return {
    event({ resourcePreEvent, resOutputsEvent, resOpFailedEvent, diagnosticEvent }) {
      if (resourcePreEvent) step(resourcePreEvent.metadata, false, false);
      if (resOutputsEvent) step(resOutputsEvent.metadata, true, false);
      if (resOpFailedEvent) step(resOpFailedEvent.metadata, true, true);
      if (diagnosticEvent) diagnose(diagnosticEvent);
    },
    end() {
      screen.end();
      for (const { urn, line } of planned.toSorted((a, b) => a.host.localeCompare(b.host))) print(withNotes(urn, line));
      for (const urn of notes.keys()) print(withNotes(urn, `${nameOf(urn)}:`));
      const open = Object.entries(outputs).filter(([, value]) => !hasSecret(value));
      return { counts, failedLooks, outputs: Object.fromEntries(open), problems };
    },
  };
}
