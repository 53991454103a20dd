import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { z } from "zod";
import { define, type Definition } from "../../provider/definition";
import { lookForDrift } from "../../provider/drift";
import { read, schemaVersion, type Inputs } from "../../provider/lifecycle";
import { Secret } from "../../provider/shell";
import { block, file } from "../../provider/steps";
import type { Remote } from "../../provider/ssh/remote";
import type { Step } from "../../provider/step";
import { fakeHost, type FakeHost } from "../harness/fake-remote";
import { fakeWorld, inputsFor } from "../harness/thing";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-contents-"));
// Everybody may read what is in it, unless a test says otherwise.
chmodSync(scratch, 0o755);
after(() => rmSync(scratch, { recursive: true, force: true }));

let path = "";
let host: FakeHost;
let round = 0;
beforeEach(() => {
  const folder = join(scratch, `d${round++}`);
  mkdirSync(folder);
  path = join(folder, "it.conf");
  host = fakeHost(`${folder}-host`);
});

type Wanted = (path: string) => Step;
/** What the component wants: set by each test. */
let wanted: Wanted;
const texts: Definition = { kind: "Texts", about: "Text", args: z.object({}), steps: () => [wanted(path)] };
define(texts);

const stored = (name = "one"): Inputs => ({ ...inputsFor({}, name), schema: schemaVersion, drift: [] });
const world = (remote: Remote = host.remote) => fakeWorld(() => Promise.resolve(remote));
const drifted = async (names: readonly string[] = ["one"], remote?: Remote) => {
  const type = "pulumi-nodejs:dynamic/kubexm:Texts";
  const all = names.map((name) => ({ type, outputs: stored(name) }));
  return (await lookForDrift(all, world(remote).world)).drift;
};

const numbers = (count: number, more = "") => Array.from({ length: count }, (_, i) => `${more}${i}\n`).join("");
const conf = (text: string) => (at: string) => file(at, text, { mode: "0644" });
const ours = (text: string) => (at: string) => block(at, "kx", text);
const around = (text: string) => `theirs\n# BEGIN kx\n${text}# END kx\ntheirs too\n`;

/** What is wanted, what stands there, and what a person sees of it. */
const shown: readonly [what: string, wanted: Wanted, there: string, lines: readonly string[]][] = [
  ["a line that was changed", conf("a\nb\nc\n"), "a\nx\nc\n", ["@@ -2,1 +2,1 @@", "-x", "+b"]],
  ["lines in two places", conf("a\nb\nc\n"), "a\nb\nc\nd\n\n", ["@@ -4,2 +3,0 @@", "-d", "-"]],
  ["an emptied file", conf("a\n"), "", ["@@ -0,0 +1,1 @@", "+a"]],
  [
    "a newline that is missing at the end",
    conf("a\n"),
    "a",
    ["@@ -1,1 +1,1 @@", "-a", "\\ No newline at end of file", "+a"],
  ],
  [
    "signs that turn the order of what is read, or that nobody sees",
    conf("a\n"),
    "a\u202eb\u{e0001}\ufeff\n",
    ["@@ -1,1 +1,1 @@", "-a\\u{202e}b\\u{e0001}\\u{feff}", "+a"],
  ],
  ["line ends of another system", conf("a\n"), "a\r\n", ["@@ -1,1 +1,1 @@", "-a\\x0d", "+a"]],
  [
    "what a terminal would act on",
    conf("a\n"),
    "\u001b[2J\u009b2J\tü\n",
    ["@@ -1,1 +1,1 @@", "-\\x1b[2J\\x9b2J\tü", "+a"],
  ],
  ["a long line", conf(""), `${"x".repeat(300)}\n`, ["@@ -1,1 +0,0 @@", `-${"x".repeat(159)}…`]],
  [
    "more lines than anybody reads",
    conf(""),
    numbers(40),
    ["@@ -1,40 +0,0 @@", ...Array.from({ length: 11 }, (_, i) => `-${i}`), "… 29 more lines"],
  ],
  [
    "more text than anybody reads",
    conf(""),
    numbers(9, "x".repeat(140)),
    ["@@ -1,9 +0,0 @@", ...[0, 1, 2, 3].map((i) => `-${"x".repeat(140)}${i}`), "… 5 more lines"],
  ],
  ["another file altogether", conf(numbers(300)), numbers(300, "x"), ["more than 500 lines differ"]],
  ["a long file", conf("a\n"), "x".repeat(64 * 1024 + 1), ["what is there is longer than 64 KiB"]],
  [
    "a long file that is just not too long",
    conf("a\n"),
    "x".repeat(64 * 1024),
    ["@@ -1,1 +1,1 @@", `-${"x".repeat(159)}…`, "\\ No newline at end of file", "+a"],
  ],
  ["what is no text", conf("a\n"), "a\0b", ["what is there is no text"]],
  ["a block of ours", ours("b\nc\n"), around("b\nx\n"), ["@@ -2,1 +2,1 @@", "-x", "+c"]],
];

describe("a person sees line by line how a content differs:", () => {
  for (const [what, step, there, lines] of shown)
    test(what, async () => {
      wanted = step;
      writeFileSync(path, there);
      assert.deepEqual(
        (await drifted()).map((one) => one.lines),
        [lines],
      );
    });
});

/** And what is sent to the host for it after the look. */
const hidden: readonly [what: string, wanted: Wanted, put: () => void, asked: boolean][] = [
  ["a secret", (at) => file(at, new Secret("a\n")), () => writeFileSync(path, "x\n"), false],
  ["a secret by another word", (at) => ({ ...file(at, "a\n"), secret: true }), () => writeFileSync(path, "x\n"), false],
  [
    "what a plan hides, too",
    (at) => ({ ...file(at, "a\n"), shown: { text: "a\n", secret: true } }),
    () => writeFileSync(path, "x\n"),
    false,
  ],
  ["a file that is not there", conf("a\n"), () => undefined, false],
  ["a link in its place", conf("a\n"), () => symlinkSync("/dev/null", path), false],
  ["a file with other rights", conf("a\n"), () => writeFileSync(path, "a\n", { mode: 0o755 }), false],
  ["a block that is not there", ours("a\n"), () => writeFileSync(path, "theirs\n"), false],
  [
    "a file that only some may read",
    conf("a\n"),
    () => {
      writeFileSync(path, "password=x\n");
      chmodSync(path, 0o640);
    },
    true,
  ],
  [
    "a file that only some come to",
    conf("a\n"),
    () => {
      writeFileSync(path, "password=x\n");
      chmodSync(dirname(path), 0o750);
    },
    true,
  ],
  [
    "a block in a file that only some may read",
    ours("a\n"),
    () => {
      writeFileSync(path, around("x\n"));
      chmodSync(path, 0o600);
    },
    true,
  ],
];

describe("a person sees only that it differs:", () => {
  for (const [what, step, put, asked] of hidden)
    test(what, async () => {
      wanted = step;
      put();
      assert.deepEqual(
        (await drifted()).map(({ step: id, lines }) => [id, lines]),
        [[step(path).id, undefined]],
      );
      assert.deepEqual(host.ran.slice(1).includes("lines that differ"), asked, host.ran.join());
    });

  /** Before the host is asked for its lines. */
  const meanwhile: readonly [what: string, act: () => void][] = [
    ["a file that went meanwhile", () => rmSync(path)],
    ["a file that was changed again meanwhile", () => writeFileSync(path, "y\n")],
    [
      "a file of a host that does not answer any more",
      () => {
        throw new Error("gone");
      },
    ],
  ];
  for (const [what, act] of meanwhile)
    test(what, async () => {
      wanted = conf("a\n");
      writeFileSync(path, "x\n");
      const { remote } = host;
      const run: Remote["run"] = async (script, options) => {
        if (options?.title === "lines that differ") act();
        return remote.run(script, options);
      };
      const [one] = await drifted(["one"], { ...remote, run });
      assert.match(one?.want ?? "", /^sha256=/);
      assert.equal(one?.lines, undefined);
    });
});

test("the components of a host share one further exec", async () => {
  wanted = conf("a\n");
  writeFileSync(path, "x\n");
  const names = ["one", "two", "three"];
  assert.deepEqual(
    (await drifted(names)).map(({ lines }) => lines?.length),
    names.map(() => 3),
  );
  assert.deepEqual(host.ran, ["facts", "look", "lines that differ"]);
});

test("a refresh tells the lines, and stores none", async () => {
  wanted = conf("a\n");
  writeFileSync(path, "password=canary\n");
  const { world: here, heard } = world();
  assert.doesNotMatch(JSON.stringify(await read(texts, here, stored())), /canary/);
  const [head, ...rows] = [`path ${path}: found -, wanted +`, "@@ -1,1 +1,1 @@", "-password=canary", "+a"];
  assert.deepEqual(heard, [{ kind: "info", text: [head, ...rows.map((row) => `    ${row}`)].join("\n") }]);
});
