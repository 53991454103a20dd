import assert from "node:assert/strict";
import { test } from "node:test";
import { demoArguments, demoHosts } from "../../cli/demo.js";
import { FLAGS, type PulumiVerb, pulumiArguments } from "../../cli/flags.js";
import { kubeconfigCommand } from "../../cli/kubeconfig.js";
import { UsageError } from "../../toolchain/errors.js";

const plain = { file: "cluster.yaml", yes: false, json: false, options: {} };

for (const [verb, argv, want] of [
  ["up", [], plain],
  ["up", ["-f", "a/b.yaml"], { ...plain, file: "a/b.yaml" }],
  ["preview", ["--file=x.yaml", "--json"], { ...plain, file: "x.yaml", json: true }],
  ["destroy", ["-y", "--continue-on-error"], { ...plain, yes: true, options: { continueOnError: true } }],
  ["up", ["--refresh", "--diff"], { ...plain, options: { refresh: true, diff: true } }],
  [
    "up",
    ["--target", "a", "--target=b", "--target-dependents"],
    { ...plain, options: { target: ["a", "b"], targetDependents: true } },
  ],
  ["refresh", ["--parallel", "8"], { ...plain, options: { parallel: 8 } }],
  ["destroy", ["--preview-only"], { ...plain, options: { previewOnly: true } }],
  ["up", ["--message", "why", "--expect-no-changes"], { ...plain, options: { message: "why", expectNoChanges: true } }],
] as const)
  test(`kubexm ${[verb, ...argv].join(" ")}`, () => {
    assert.deepEqual(pulumiArguments(verb, argv), want);
  });

for (const [verb, argv, say] of [
  ["up", ["--foo"], /^kubexm up: .*--foo.*; flags are --file --yes --json .*--refresh/],
  ["refresh", ["--refresh"], /--refresh/],
  ["preview", ["--yes"], /--yes/],
  ["up", ["extra"], /extra/],
  ["up", ["--file"], /file/],
  ["up", ["--parallel", "0"], /positive whole number, not "0"$/],
  ["up", ["--parallel", "many"], /not "many"$/],
] as const)
  test(`kubexm ${[verb, ...argv].join(" ")} is refused in one line`, () => {
    assert.throws(
      () => pulumiArguments(verb, argv),
      (error) => error instanceof UsageError && say.test(error.message) && !error.message.includes("\n"),
    );
  });

test("kubexm kubeconfig --json is refused, as it prints a path", async () => {
  await assert.rejects(
    kubeconfigCommand(["--json"]),
    /^UsageError: kubexm kubeconfig: .*'--json'; flags are --file --help$/,
  );
});

test("every flag belongs to a verb", () => {
  const verbs: readonly PulumiVerb[] = ["preview", "up", "refresh", "destroy"];
  for (const [name, flag] of Object.entries(FLAGS))
    assert.ok(
      flag.verbs.some((verb) => verbs.includes(verb)),
      name,
    );
});

for (const [argv, want] of [
  [[], { down: false, masters: 1, workers: 1 }],
  [["up"], { down: false, masters: 1, workers: 1 }],
  [["down"], { down: true, masters: 1, workers: 1 }],
  [["--masters", "3", "--workers", "0"], { down: false, masters: 3, workers: 0 }],
] as const)
  test(`npm run demo -- ${argv.join(" ")}`, () => {
    assert.deepEqual(demoArguments(argv), want);
  });

for (const argv of [["--masters", "0"], ["--workers", "x"], ["sideways"], ["down", "now"], ["--nodes", "2"]])
  test(`npm run demo -- ${argv.join(" ")} is refused`, () => {
    assert.throws(() => demoArguments(argv), UsageError);
  });

test("the demo's hosts are numbered by role", () => {
  assert.deepEqual(demoHosts({ masters: 2, workers: 1 }), { masters: ["m1", "m2"], workers: ["w1"] });
});
