import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { z } from "zod";
import type { Definition } from "../../provider/definition";
import { create, HalfMade, read, update } from "../../provider/lifecycle";
import { Secret, sh } from "../../provider/shell";
import { command } from "../../provider/steps";
import type { Step } from "../../provider/step";
import { fakeHost, factsText, type FakeHost } from "../harness/fake-remote";
import { fakeWorld, inputsFor } from "../harness/thing";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-known-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

let round = 0;
let folder = "";
let host: FakeHost;
let here: ReturnType<typeof fakeWorld>;
beforeEach(() => {
  folder = join(scratch, `d${round++}`);
  mkdirSync(folder);
  host = fakeHost(`${folder}-host`);
  here = fakeWorld(() => Promise.resolve(host.remote));
});

const word = (name: string) => readFileSync(join(folder, name), "utf8");
const there = () => readdirSync(folder).filter((name) => name !== "made");
const made = () =>
  existsSync(join(folder, "made")) ? readFileSync(join(folder, "made"), "utf8").trim().split("\n") : [];

/** Files with a word each. */
const words: Definition = {
  kind: "Words",
  about: "Files with a word each",
  args: z.object({ folder: z.string(), words: z.record(z.string(), z.string()) }),
  steps: (given) => {
    const { folder: within, words: all } = given as { folder: string; words: Record<string, string> };
    return Object.entries(all).map(([name, word]): Step => {
      const path = join(within, name);
      return {
        id: `word ${name}`,
        want: { word },
        look: sh`kv word "$(cat ${path} 2>/dev/null)"`,
        make: sh`[ ${word} != broken ] || exit 7; printf '%s\n' ${name} >>${within}/made; printf %s ${word} >${path}`,
        undo: sh`rm -f ${path}`,
      };
    });
  },
};

test("a step that renews something says so when it was made, and not when all was as wanted", async () => {
  const renewing: Definition = {
    ...words,
    steps: (given, facts) =>
      words
        .steps(given, facts)
        .flat()
        .map((step) => ({ ...step, renews: step.id })),
  };
  const inputs = inputsFor({ folder, words: { a: "one" } });
  const { outs } = await create(renewing, here.world, inputs);
  assert.equal(here.world.renewed.size, 1);
  here.world.renewed.clear();
  await update(renewing, here.world, outs, inputs);
  assert.equal(here.world.renewed.size, 0);
});

const ofSystem: Definition = {
  ...words,
  steps: (given, facts) => words.steps({ ...given, words: { [`${facts.os.id}-${facts.os.version}`]: "it" } }, facts),
};
/** What is read, how many looks that takes, and what differs then. */
const systems: readonly [what: string, release: string, looks: number, found: readonly string[]][] = [
  ["as it was", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n', 1, []],
  ["a point release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12.9"\n', 1, []],
  ["another version", 'ID=debian\nVERSION_ID="13"\n', 2, ["word debian-13", "word debian-12"]],
  ["of another family", 'ID="rocky"\nVERSION_ID="9"', 2, ["word rocky-9", "word debian-12"]],
];
for (const [what, release, looks, found] of systems)
  test(`a look at a host whose system is ${what} goes by that, and asks no facts; the next one knows`, async () => {
    const { outs } = await create(ofSystem, here.world, inputsFor({ folder, words: {} }));
    host.facts = release;
    const before = host.ran.length;
    const first = await read(ofSystem, here.world, outs);
    const second = await read(ofSystem, here.world, first);
    for (const { drift } of [first, second])
      assert.deepEqual(
        drift.map(({ step }) => step),
        found,
      );
    const { machineId } = JSON.parse(first.facts as string) as { machineId: string };
    assert.equal(machineId, "machine-1");
    assert.deepEqual(
      host.ran.slice(before),
      Array.from({ length: looks + 1 }, () => "look"),
    );
  });

describe("an update of what is known", () => {
  const saying = (all: Record<string, string>) => inputsFor({ folder, words: all });
  const changed = async (from: Record<string, string>, to: Record<string, string>, meanwhile = () => {}) => {
    const { outs } = await create(words, here.world, saying(from));
    rmSync(join(folder, "made"));
    meanwhile();
    const before = host.ran.length;
    const next = await update(words, here.world, outs, saying(to));
    return { outs: next.outs, ran: host.ran.slice(before) };
  };
  const work = "Words one";

  test("changes what is wanted otherwise with one exec", async () => {
    const { ran } = await changed({ a: "1", b: "1" }, { a: "1", b: "2" });
    assert.deepEqual(ran, [work]);
    assert.deepEqual(made(), ["b"]);
  });
  test("looks again after it took back what is not wanted: that may have changed what is", async () => {
    const { ran } = await changed({ a: "1", b: "1", c: "1" }, { a: "1", b: "2" });
    assert.deepEqual(ran, ["look", work, "look"]);
    assert.deepEqual(made(), ["b"]);
    assert.deepEqual(there(), ["a", "b"]);
    assert.equal(word("b"), "2");
  });
  test("leaves what drifted beside it to a look", async () => {
    const { outs } = await changed({ a: "1", b: "1" }, { a: "2", b: "1" }, () => writeFileSync(join(folder, "b"), "x"));
    assert.deepEqual(made(), ["a"]);
    const found = await read(words, here.world, outs);
    assert.deepEqual(
      found.drift.map(({ step }) => step),
      ["word b"],
    );
  });
  test("looks first at what is new: it may be there", async () => {
    const { ran } = await changed({ a: "1" }, { a: "1", b: "2" }, () => writeFileSync(join(folder, "b"), "2"));
    assert.deepEqual(ran, ["look"]);
  });
  test("looks first on another machine, and says so", async () => {
    const { outs } = await create(words, here.world, saying({ a: "1" }));
    const other = fakeHost(`${folder}-other`);
    other.facts = factsText("machine-2");
    const elsewhere = fakeWorld(() => Promise.resolve(other.remote));
    await update(words, elsewhere.world, outs, saying({ a: "2" }));
    assert.deepEqual(other.ran, [work, "facts", "look", work]);
    assert.match(elsewhere.heard.map(({ text }) => text).join(), /is another machine than before/);
  });
  test("that fails is stored as half-made, and the next run goes on", async () => {
    const { outs } = await create(words, here.world, saying({ a: "1" }));
    const error: unknown = await update(words, here.world, outs, saying({ a: "broken" })).catch((why: unknown) => why);
    assert.ok(error instanceof HalfMade);
    assert.deepEqual([error.properties["incomplete"], error.properties["made"]], [true, true]);
    await update(words, here.world, error.properties, saying({ a: "2" }));
    assert.equal(word("a"), "2");
  });
  test("does not build on what a run left that was cut off, whatever the state says", async () => {
    const { outs } = await create(words, here.world, saying({ a: "1", b: "1" }));
    await assert.rejects(update(words, here.world, outs, saying({ a: "2", b: "broken" })));
    const next = await update(words, here.world, outs, saying({ a: "1", b: "3" }));
    assert.deepEqual([word("a"), word("b")], ["1", "3"]);
    const before = host.ran.length;
    await update(words, here.world, next.outs, saying({ a: "1", b: "4" }));
    assert.deepEqual(host.ran.slice(before), [work]);
  });
  test("a changed secret is a change, where only what was asked and done holds it", async () => {
    const login: Definition = {
      ...words,
      args: z.object({ folder: z.string(), key: z.string() }),
      steps: (given) => {
        const { folder: within, key } = given as { folder: string; key: string };
        const path = join(within, "login");
        return [
          command("log in", {
            run: sh`printf '%s\n' log-in >>${within}/made; printf %s ${new Secret(key)} >${path}`,
            doneWhen: sh`[ "$(cat ${path})" = ${new Secret(key)} ]`,
          }),
        ];
      },
    };
    const { outs } = await create(login, here.world, inputsFor({ folder, key: "first" }));
    await update(login, here.world, outs, inputsFor({ folder, key: "second" }));
    assert.equal(word("login"), "second");
  });
  test("of a state that was put back looks first", async () => {
    const { outs } = await create(words, here.world, saying({ a: "1", b: "1" }));
    await update(words, here.world, outs, saying({ a: "2", b: "1" }));
    await update(words, here.world, outs, saying({ a: "1", b: "2" }));
    assert.deepEqual([word("a"), word("b")], ["1", "2"]);
  });
});
