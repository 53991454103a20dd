import type { DiagnosticEvent, EngineEvent, StepEventMetadata } from "@pulumi/pulumi/automation";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PulumiVerb } from "../../cli/flags.js";
import { hasSecret, plainMessage, report } from "../../cli/report.js";
import { type Counts, isUnseen, noCounts, onlyLooked, summary } from "../../cli/words.js";

type Properties = Record<string, unknown>;
interface Step {
  op: string;
  name?: string;
  id?: string;
  host?: unknown;
  was?: Properties;
  is?: Properties;
  outputs?: { old?: Properties; new?: Properties };
}

const urnOf = (name: string) => `urn:pulumi:s::kubexm::pulumi-nodejs:dynamic/kubexm:Chrony::${name}`;

function metadata({ op, name = "c", id = "i", host = { name: "m1" }, was, is, outputs }: Step): StepEventMetadata {
  const type = "pulumi-nodejs:dynamic/kubexm:Chrony";
  const state = (inputs: Properties | undefined, outs: Properties | undefined) =>
    inputs && {
      type,
      urn: urnOf(name),
      custom: true,
      id,
      parent: "",
      inputs: { host, ...inputs },
      outputs: outs ?? {},
      provider: "",
    };
  const [before, now] = [state(was, outputs?.old), state(is, outputs?.new)];
  return {
    op,
    urn: urnOf(name),
    type,
    provider: "",
    ...(before && { old: before }),
    ...(now && { new: now }),
  } as StepEventMetadata;
}

const event = (part: Partial<EngineEvent>): EngineEvent => ({ sequence: 0, timestamp: 0, ...part });
const begin = (step: Step) => event({ resourcePreEvent: { metadata: metadata(step) } });
const end = (step: Step) => event({ resOutputsEvent: { metadata: metadata(step) } });
const fail = (step: Step) => event({ resOpFailedEvent: { metadata: metadata(step), status: 0, steps: 0 } });
const both = (step: Step) => [begin(step), end(step)];
const say = (severity: string, message: string, name?: string, ephemeral = false) =>
  event({
    diagnosticEvent: {
      message,
      severity,
      color: "never",
      ephemeral,
      ...(name && { urn: urnOf(name) }),
    } as DiagnosticEvent,
  });

/** What is printed, times taken out, and what is counted. */
function told(verb: PulumiVerb, plan: boolean, events: readonly EngineEvent[]) {
  const lines: string[] = [];
  const screen = { print: (line: string) => void lines.push(line), live: () => undefined, end: () => undefined };
  const view = report({ verb, plan, screen, log: () => undefined });
  for (const one of events) view.event(one);
  const { counts, problems, outputs } = view.end();
  return {
    lines: lines.map((line) =>
      line
        .replace(/\d+\.\d s/, "T")
        .replace(/ +/g, " ")
        .trim(),
    ),
    counts: Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0)),
    problems,
    outputs,
  };
}

const drift = [{ step: "file /etc/x", want: "a", found: "b" }];

/** Looks that fail, each at a resource of its own. */
const failedLooks = (...looks: [name: string, why: string][]) =>
  looks.flatMap(([name, why]) => {
    const step = { op: "refresh", name, was: {} };
    return [begin(step), say("error", why, name), fail(step)];
  });
const away = (host: string) => `${host}: cannot be reached\n  what to do: see to it`;

for (const { what, verb = "up", plan = false, events, lines, counts, problems = 0 } of [
  {
    what: "a create",
    events: both({ op: "create", is: {} }),
    lines: ["m1 + Chrony created in T"],
    counts: { created: 1 },
  },
  {
    what: "a create on a master that is about another node",
    events: both({ op: "create", is: { node: "w1" } }),
    lines: ["m1 + Chrony w1 created in T"],
    counts: { created: 1 },
  },
  {
    what: "an unchanged resource: no line",
    events: both({ op: "same", was: {}, is: {} }),
    lines: [],
    counts: { unchanged: 1 },
  },
  {
    what: "an update with the arguments that differ, the loader left out",
    events: both({
      op: "update",
      was: { servers: ["a"], x: 1, __provider: "1" },
      is: { servers: ["b"], x: 1, __provider: "2" },
    }),
    lines: ["m1 ~ Chrony changed in T servers"],
    counts: { changed: 1 },
  },
  {
    what: "a delete",
    verb: "destroy",
    events: both({ op: "delete", was: {} }),
    lines: ["m1 - Chrony removed in T"],
    counts: { removed: 1 },
  },
  {
    what: "what a host that is gone keeps is not removed, and that it is gone is said once",
    verb: "destroy",
    events: ["c", "d"].flatMap((name) => [
      begin({ op: "delete", name, was: {} }),
      say("warning", "m1 cannot be reached and was forgotten as asked", name),
      end({ op: "delete", name, was: {} }),
    ]),
    lines: [
      ...["m1 - Chrony given up in T", "warning: m1 cannot be reached and was forgotten as asked"],
      "m1 - Chrony given up in T",
    ],
    counts: { "given up": 2 },
  },
  {
    what: "a create that --target leaves out is neither told nor counted",
    events: both({ op: "same", id: "", was: {}, is: {} }),
    lines: [],
    counts: {},
  },
  {
    what: "a replacement counts once",
    events: ["create-replacement", "replace", "delete-replaced"].flatMap((op) => both({ op, was: {}, is: {} })),
    lines: ["m1 + Chrony created anew in T", "m1 ± Chrony replaced in T", "m1 - Chrony removed the old in T"],
    counts: { replaced: 1 },
  },
  {
    what: "a failure with its reasons under it, and without Pulumi's wrapping",
    events: [
      begin({ op: "create", is: {} }),
      say("error", "1 error occurred:\n\t* m1 › Chrony: no\n  exit code: 3\n\n", "c"),
      fail({ op: "create", is: {} }),
      say("error", "update failed\n"),
    ],
    lines: ["m1 ! Chrony failed after T", "m1 › Chrony: no", "exit code: 3"],
    counts: { failed: 1 },
    problems: 1,
  },
  {
    what: "a host that is away in full at its first resource, and in a line at the others",
    events: failedLooks(["c", away("m1")], ["d", away("m1")], ["e", away("w1")], ["f", "its own"], ["g", away("m1")]),
    lines: [
      ...["m1 ! Chrony failed after T", "m1: cannot be reached", "what to do: see to it"],
      "m1 ! Chrony failed after T: as above (m1: cannot be reached)",
      ...["m1 ! Chrony failed after T", "w1: cannot be reached", "what to do: see to it"],
      ...["m1 ! Chrony failed after T", "its own"],
      "m1 ! Chrony failed after T: as above (m1: cannot be reached)",
    ],
    counts: { failed: 5 },
    problems: 5,
  },
  {
    what: "the same of a preview, whose failed looks are no operations",
    verb: "preview",
    plan: true,
    events: ["c", "d"].map((name) => say("error", `Preview failed: ${away("m1")}`, name)),
    lines: ["c:", "m1: cannot be reached", "what to do: see to it", "d: as above (m1: cannot be reached)"],
    counts: {},
    problems: 2,
  },
  {
    what: "plans that are alike, each under its resource",
    verb: "preview",
    plan: true,
    events: ["c", "d"].flatMap((name) => [say("info", "+ pkg chrony", name), ...both({ op: "create", name, is: {} })]),
    lines: ["m1 + Chrony create", "+ pkg chrony", "m1 + Chrony create", "+ pkg chrony"],
    counts: { created: 2 },
  },
  {
    what: "the plan that is told before the resource begins, said twice, stands once under it",
    verb: "preview",
    plan: true,
    events: [
      say("info", "+ pkg chrony\n    +a\n    +a\n", "c"),
      say("info", "+ pkg chrony\n    +a\n    +a\n", "c"),
      ...both({ op: "create", is: {} }),
    ],
    lines: ["m1 + Chrony create", "+ pkg chrony", "+a", "+a"],
    counts: { created: 1 },
  },
  {
    what: "a plan stands in the order of the hosts",
    verb: "preview",
    plan: true,
    events: ["w1", "m1"].flatMap((name) => both({ op: "create", name, host: { name }, is: {} })),
    lines: ["m1 + Chrony create", "w1 + Chrony create"],
    counts: { created: 2 },
  },
  {
    what: "drift and its lines under the change that heals it; the look itself is no change",
    events: [
      say("info", "file /etc/x: found -, wanted +\n    -b\n    +a\n", "c"),
      ...both({ op: "refresh", was: {}, is: {}, outputs: { new: { drift } } }),
      ...both({ op: "update", was: {}, is: {}, outputs: { old: { drift } } }),
    ],
    lines: [
      "m1 ~ Chrony changed in T",
      "drift: file /etc/x: want a, found b",
      "file /etc/x: found -, wanted +",
      "-b",
      "+a",
    ],
    counts: { changed: 1 },
  },
  {
    what: "a refresh changes no host",
    verb: "refresh",
    events: both({ op: "update", was: {}, is: {}, outputs: { new: { drift } } }),
    lines: ["m1 ~ Chrony differs from the state", "drift: file /etc/x: want a, found b"],
    counts: { changed: 1 },
  },
  {
    what: "a warning about a resource that does not change",
    events: [begin({ op: "same", was: {}, is: {} }), say("warning", "kept", "c"), end({ op: "same", was: {}, is: {} })],
    lines: ["m1 Chrony unchanged in T", "warning: kept"],
    counts: { unchanged: 1 },
  },
  {
    what: "what belongs to no resource of the work",
    events: [
      say("info", "hello"),
      say("info", "hello"),
      say("debug", "inner"),
      say("warning", "using pulumi-resource-pulumi-nodejs from $PATH at /x"),
      say("error", "bad program"),
      say("error", "of check", "z"),
    ],
    lines: ["hello", "error: bad program", "z:", "of check"],
    counts: {},
    problems: 2,
  },
  {
    what: "a host that is not known is named by the resource",
    events: both({ op: "create", host: "", name: "n", is: { host: 3 } }),
    lines: ["n + Chrony created in T"],
    counts: { created: 1 },
  },
] as {
  what: string;
  verb?: PulumiVerb;
  plan?: boolean;
  events: EngineEvent[];
  lines: string[];
  counts: Partial<Counts>;
  problems?: number;
}[])
  test(`told: ${what}`, () => {
    assert.deepEqual(told(verb, plan, events), { lines, counts, problems, outputs: {} });
  });

test("a run that failed at looks alone is told from one that failed at a change", () => {
  const after = (events: readonly EngineEvent[]) => {
    const screen = { print: () => undefined, live: () => undefined, end: () => undefined };
    const view = report({ verb: "up", plan: false, screen, log: () => undefined });
    for (const one of events) view.event(one);
    const { counts, failedLooks } = view.end();
    return onlyLooked(counts, failedLooks);
  };
  const look = failedLooks(["c", away("m1")]);
  const same = both({ op: "same", name: "s", was: {}, is: {} });
  const change = { op: "update", name: "d", was: {}, is: {} };
  assert.equal(after([...same, ...look]), true);
  assert.equal(after(same), false);
  assert.equal(after([...look, begin(change), fail(change)]), false);
  assert.equal(after([...same, begin(change), fail(change)]), false);
  assert.equal(after([...look, ...both({ op: "create", name: "e", is: {} })]), false);
});

test("the log of the run has every error in full", () => {
  const failed: unknown[] = [];
  const screen = { print: () => undefined, live: () => undefined, end: () => undefined };
  const view = report({ verb: "refresh", plan: false, screen, log: (entry) => failed.push(entry["failed"]) });
  for (const one of failedLooks(["c", away("m1")], ["d", away("m1")])) view.event(one);
  assert.deepEqual(failed, [away("m1"), away("m1")]);
});

test("secret outputs of the stack are left out, at any depth", () => {
  const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "[secret]" };
  const type = "pulumi:pulumi:Stack";
  const state = {
    type,
    urn: "u::s",
    id: "",
    parent: "",
    inputs: {},
    outputs: { open: 1, key: secret, deep: { a: [secret] } },
    provider: "",
  };
  const step = { op: "same", urn: "u::s", type, new: state, provider: "" } as StepEventMetadata;
  const { outputs } = told("up", false, [event({ resOutputsEvent: { metadata: step } })]);
  assert.deepEqual(outputs, { open: 1 });
  assert.equal(hasSecret({ a: [1, null, "x"] }), false);
});

test("messages without wrapping stay as they are", () => {
  assert.equal(plainMessage("a\n  b\n\n"), "a\n  b");
});

for (const [verb, plan, counts, bad, want] of [
  ["up", false, { created: 12, unchanged: 3 }, undefined, "12 created, 0 changed, 3 unchanged in 8.1 s"],
  ["up", false, { unchanged: 3 }, undefined, "no changes: 0 created, 0 changed, 3 unchanged in 8.1 s"],
  ["up", false, { created: 1, failed: 2 }, "failed", "failed: 1 created, 0 changed, 0 unchanged, 2 failed in 8.1 s"],
  ["up", false, { removed: 2 }, "stopped", "stopped: 0 created, 0 changed, 2 removed, 0 unchanged in 8.1 s"],
  ["preview", true, { created: 1, changed: 2 }, undefined, "1 to create, 2 to change, 0 unchanged in 8.1 s"],
  ["refresh", false, { changed: 2, unchanged: 1 }, undefined, "2 differ from the state, 1 unchanged in 8.1 s"],
  ["destroy", false, { removed: 5 }, undefined, "5 removed in 8.1 s"],
  ["destroy", false, { removed: 3, "given up": 2 }, undefined, "3 removed, 2 given up in 8.1 s"],
  ["destroy", true, { removed: 5 }, undefined, "5 to remove in 8.1 s"],
] as const)
  test(`summary of ${verb}: ${want}`, () => {
    const unseen = want.startsWith("no changes");
    assert.equal(isUnseen(verb, {}, { ...noCounts(), ...counts }), unseen);
    assert.equal(isUnseen(verb, { refresh: true }, { ...noCounts(), ...counts }), false);
    assert.equal(summary(verb, plan, { ...noCounts(), ...counts }, 8099, bad), want);
  });
