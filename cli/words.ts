import type { PulumiVerb } from "./flags.js";

/** How one kind of operation of Pulumi's is written and counted. */
interface Op {
  sign: "+" | "~" | "-" | "±" | " ";
  doing: string;
  done: string;
  plan: string;
  counts?: Count;
}

export type Count = "created" | "changed" | "replaced" | "removed" | "given up" | "unchanged" | "failed";

const create: Op = { sign: "+", doing: "creating", done: "created", plan: "create", counts: "created" };
const remove: Op = { sign: "-", doing: "removing", done: "removed", plan: "remove", counts: "removed" };
const look: Op = { sign: " ", doing: "looking", done: "looked", plan: "look" };

export const OPS: Readonly<Record<string, Op>> = {
  create,
  import: create,
  delete: remove,
  discard: remove,
  update: { sign: "~", doing: "changing", done: "changed", plan: "change", counts: "changed" },
  replace: { sign: "±", doing: "replacing", done: "replaced", plan: "replace", counts: "replaced" },
  // Counted once, as "replace".
  "create-replacement": { sign: "+", doing: "creating anew", done: "created anew", plan: "create anew" },
  "delete-replaced": { sign: "-", doing: "removing the old", done: "removed the old", plan: "remove the old" },
  same: { sign: " ", doing: "comparing", done: "unchanged", plan: "unchanged", counts: "unchanged" },
  refresh: look,
  read: look,
};

/** What a refresh says of a resource: it changes the state only, never the host. */
export const FOUND: Readonly<Record<string, string>> = { update: "differs from the state", delete: "gone" };

export type Counts = Record<Count, number>;
export const noCounts = (): Counts => ({
  created: 0,
  changed: 0,
  replaced: 0,
  removed: 0,
  "given up": 0,
  unchanged: 0,
  failed: 0,
});

type Wording = Readonly<Record<Count, string>>;

const DONE: Wording = {
  created: "created",
  changed: "changed",
  replaced: "replaced",
  removed: "removed",
  "given up": "given up",
  unchanged: "unchanged",
  failed: "failed",
};
const PLANNED: Wording = {
  ...DONE,
  created: "to create",
  changed: "to change",
  replaced: "to replace",
  removed: "to remove",
};
const LOOKED: Wording = { ...DONE, changed: "differ from the state", removed: "gone" };

/** What stands in the summary even when it is 0. */
const ALWAYS: Readonly<Record<PulumiVerb, readonly Count[]>> = {
  preview: ["created", "changed", "unchanged"],
  up: ["created", "changed", "unchanged"],
  refresh: ["changed", "unchanged"],
  destroy: ["removed"],
};

export const isPlan = (verb: PulumiVerb, options: Readonly<Record<string, unknown>>) =>
  verb === "preview" || options["previewOnly"] === true;

export function seconds(ms: number): string {
  const s = ms / 1000;
  return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

const isStill = (counts: Counts) =>
  (Object.keys(counts) as Count[]).every((count) => count === "unchanged" || counts[count] === 0);

/** It failed before anything was to be changed. */
export const onlyLooked = (counts: Counts, failedLooks: number) =>
  failedLooks > 0 && counts.failed === failedLooks && isStill({ ...counts, failed: 0 });

/** A person may take "no changes" for a word on the hosts, which are asked of only to be changed. */
export const isUnseen = (verb: PulumiVerb, options: Readonly<Record<string, unknown>>, counts: Counts) =>
  (verb === "up" || verb === "preview") && options["refresh"] !== true && counts.unchanged > 0 && isStill(counts);

/** `12 created, 0 changed, 3 unchanged in 8.1 s` */
export function summary(
  verb: PulumiVerb,
  plan: boolean,
  counts: Counts,
  ms: number,
  bad?: "failed" | "stopped",
): string {
  const words = verb === "refresh" ? LOOKED : plan ? PLANNED : DONE;
  const parts = (Object.keys(counts) as Count[])
    .filter((count) => counts[count] > 0 || ALWAYS[verb].includes(count))
    .map((count) => `${counts[count]} ${words[count]}`);
  const head = bad ? `${bad}: ` : isStill(counts) && verb !== "destroy" ? "no changes: " : "";
  return `${head}${parts.join(", ")} in ${seconds(ms)}`;
}
