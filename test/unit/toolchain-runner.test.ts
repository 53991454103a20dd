import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { run } from "../../toolchain/process.js";
import type { FileRun } from "../harness/file.js";
import { inOrder } from "../harness/pool.js";
import { type Ended, tally } from "../harness/tally.js";

const HEAD = `const { test, describe, it, before } = require("node:test"); const assert = require("node:assert");\n`;
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubexm-runner-"));
});

after(() => rm(folder, { recursive: true, force: true }));

/** What the runner makes of a test file with this text. node:test does not run inside itself: hence the process between. */
async function outcome(text: string, options: { timeoutMs?: number; testName?: string } = {}): Promise<FileRun> {
  const file = join(folder, "some.test.js");
  await writeFile(file, HEAD + text);
  const given = JSON.stringify({ timeoutMs: 30_000, ...options });
  const script = `require(${JSON.stringify(require.resolve("../harness/file.js"))})
    .runFile(${JSON.stringify(file)}, { signal: new AbortController().signal, ...${given} })
    .then((done) => { console.log(JSON.stringify(done)); process.exit(); });`;
  const between = join(folder, "between.cjs");
  await writeFile(between, script);
  const { stdout } = await run(process.execPath, [between], { env: { NODE_TEST_CONTEXT: undefined } });
  return JSON.parse(stdout) as FileRun;
}

const SUITES = `
test("plain", () => {});
describe("outer", () => {
  it("good", () => {});
  it("bad", () => assert.equal(1, 2));
  describe("inner", () => { it("deep", () => {}); it.skip("left", () => {}); it.todo("later"); });
});
test("parent", async (t) => { await t.test("child", () => {}); });`;

const CASES: {
  what: string;
  text: string;
  testName?: string;
  timeoutMs?: number;
  counts: number[];
  names: string[];
}[] = [
  { what: "leaves are counted, parents are not", text: SUITES, counts: [4, 1, 2], names: ["outer › bad"] },
  { what: "a name chooses tests", text: SUITES, testName: "DEEP", counts: [1, 0, 0], names: [] },
  { what: "a name is no pattern", text: SUITES, testName: "d.*p", counts: [0, 0, 0], names: [] },
  { what: "no tests", text: "", counts: [0, 0, 0], names: [] },
  { what: "a file that ends badly", text: "process.exit(3)", counts: [0, 1, 0], names: ["the file as a whole"] },
  { what: "a syntax error", text: `test("x"; oh no`, counts: [0, 1, 0], names: ["the file as a whole"] },
  {
    what: "an error after the tests",
    text: `test("good", () => {}); setTimeout(() => { throw new Error("late") }, 50)`,
    counts: [1, 1, 0],
    names: ["the file as a whole"],
  },
  {
    what: "a file that does not end",
    text: `test("good", () => {}); test("hangs", () => new Promise(() => setInterval(() => {}, 1000)));`,
    timeoutMs: 1500,
    counts: [1, 1, 0],
    names: ["the file as a whole"],
  },
  {
    what: "a suite whose hook fails",
    text: `describe("hooked", () => { before(() => { throw new Error("hook") }); it("x", () => {}); });`,
    counts: [0, 2, 0],
    names: ["hooked › x", "hooked"],
  },
];

for (const { what, text, counts, names, ...options } of CASES)
  test(`a test file is judged: ${what}`, async () => {
    const { passed, failed, skipped, failures } = await outcome(text, options);
    assert.deepEqual({ counts: [passed, failed, skipped], names: failures.map(({ name }) => name) }, { counts, names });
  });

test("a failure tells what was wrong, without the inside of Node", async () => {
  const { failures, output } = await outcome(
    `test("bad", () => { console.log("seen"); assert.equal("one", "two"); });`,
  );
  const detail = failures[0]?.detail ?? "";
  assert.match(detail, /one/);
  assert.match(detail, /two/);
  assert.match(detail, /some\.test\.js/);
  assert.doesNotMatch(detail, /node:internal/);
  assert.match(output, /seen/);
});

test("an error after the tests is told in the output", async () => {
  const { output } = await outcome(`test("good", () => {}); setTimeout(() => { throw new Error("late") }, 50)`);
  assert.match(output, /Error: late/);
});

test("equal names in different suites keep their own parents", () => {
  const bad = { suite: false, state: "failed", failureType: "testCodeFailure" } as const;
  const parent = { suite: true, state: "failed", failureType: "subtestsFailed" } as const;
  const events: Ended[] = [
    { ...bad, name: "x", nesting: 1 },
    { ...parent, name: "one", nesting: 0 },
    { ...bad, name: "x", nesting: 2 },
    { ...parent, name: "in", nesting: 1 },
    { ...parent, name: "two", nesting: 0 },
  ];
  assert.deepEqual(
    tally(events).failures.map(({ name }) => name),
    ["one › x", "two › in › x"],
  );
});

test("a pool keeps the order of results and its width", async () => {
  let now = 0;
  let most = 0;
  const results = await inOrder([5, 1, 3, 1], 2, async (turns) => {
    most = Math.max(most, ++now);
    for (let i = 0; i < turns; i++) await Promise.resolve();
    now--;
    return turns;
  });
  assert.deepEqual(results, [5, 1, 3, 1]);
  assert.equal(most, 2);
});
