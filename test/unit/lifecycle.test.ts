import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import type { Ask } from "../../provider/ask";
import { RemoteError } from "../../provider/errors";
import type { Definition } from "../../provider/definition";
import {
  create,
  diff,
  HalfMade,
  read,
  refuseFixed,
  remove,
  schemaVersion,
  update,
  type Inputs,
} from "../../provider/lifecycle";
import { sh } from "../../provider/shell";
import { hostSpec } from "../../provider/ssh/spec";
import { fakeHost, factsText, type FakeHost } from "../harness/fake-remote";
import { fakeWorld, inputsFor, never, thing } from "../harness/thing";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-lifecycle-"));
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

const wanting = (names: readonly string[], more: object = {}) => inputsFor({ folder, names, ...more });
const there = () => readdirSync(folder).filter((name) => !["made", "undone"].includes(name));
const said = (file: string) =>
  existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").split("\n").slice(0, -1) : [];
const noLedger = () => assert.ok(!existsSync(`${folder}-host/K`), "the ledger is gone");
const gone = (reason: "unreachable" | "exit" | "auth") =>
  fakeWorld(() => Promise.reject(new RemoteError("no way to it", { host: "h1", reason, advice: "Look." })));

async function half(action: Promise<unknown>): Promise<HalfMade> {
  const error: unknown = await action.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof HalfMade, String(error));
  return error;
}

const machineIdIn = (facts: unknown) => (JSON.parse(facts as string) as { machineId: string }).machineId;

describe("create, read, update, delete", () => {
  test("create makes in order, says id and outputs; delete takes back in reverse and leaves nothing", async () => {
    const inputs = wanting(["a", "b", "c"]);
    const { id, outs } = await create(thing, here.world, inputs);
    assert.equal(id, "h1/Thing/one");
    assert.deepEqual(said("made"), ["a", "b", "c"]);
    const { facts, ...rest } = outs;
    assert.deepEqual(rest, { ...inputs, schema: schemaVersion, drift: [] });
    assert.equal(machineIdIn(facts), "machine-1");
    await remove(thing, here.world, outs);
    assert.deepEqual(said("undone"), ["c", "b", "a"]);
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("what was there before is neither made nor taken back", async () => {
    writeFileSync(join(folder, "b"), "");
    const { outs } = await create(thing, here.world, wanting(["a", "b"]));
    assert.deepEqual(said("made"), ["a"]);
    await remove(thing, here.world, outs);
    assert.deepEqual(there(), ["b"]);
  });
  test("create again adopts (lost state): nothing is made twice, and delete still reverts", async () => {
    await create(thing, here.world, wanting(["a", "b"]));
    const { outs } = await create(thing, here.world, wanting(["a", "b"]));
    assert.deepEqual(said("made"), ["a", "b"]);
    await remove(thing, here.world, outs);
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("update undoes what the arguments no longer contain, and makes what is new", async () => {
    const { outs } = await create(thing, here.world, wanting(["a", "b"]));
    const next = await update(thing, here.world, outs, wanting(["b", "c"]));
    assert.deepEqual(there(), ["b", "c"]);
    await remove(thing, here.world, next.outs);
    assert.deepEqual(there(), []);
  });
  test("drift is seen by read, makes diff say so, and update heals it", async () => {
    const { outs } = await create(thing, here.world, wanting(["a", "b"]));
    assert.deepEqual(diff(outs), {});
    rmSync(join(folder, "a"));
    const found = await read(thing, here.world, outs);
    assert.deepEqual(found.drift, [{ step: "command a", want: "done=yes", found: "done=no" }]);
    assert.deepEqual(diff(found), { changes: true });
    const healed = await update(thing, here.world, found, wanting(["a", "b"]));
    assert.deepEqual(there(), ["a", "b"]);
    assert.deepEqual(diff(healed.outs), {});
  });
  test("read changes nothing and asks no facts when the state has them", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    rmSync(join(folder, "a"));
    const before = host.ran.length;
    await read(thing, here.world, outs);
    assert.deepEqual(host.ran.slice(before), ["look"]);
    assert.deepEqual(there(), []);
  });
  test("read of a host that cannot be reached is an error, never 'gone'", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    for (const reason of ["unreachable", "exit"] as const)
      await assert.rejects(read(thing, gone(reason).world, outs), /no way to it/);
  });
  test("another machine under the same name is told, and set up", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    const other = fakeHost(`${folder}-other`);
    other.facts = factsText("machine-2");
    const there2 = fakeWorld(() => Promise.resolve(other.remote));
    const { outs: next } = await update(thing, there2.world, outs, wanting(["a", "b"]));
    assert.match(there2.heard.map(({ text }) => text).join(), /h1 is another machine than before/);
    assert.equal(machineIdIn(next["facts"]), "machine-2");
  });
});

describe("wanted again after a run was killed that was taking it back", () => {
  const ending = async () => ({ ...(await create(thing, here.world, wanting(["a", "b"]))).outs, ending: true });
  test("diff says so, and nothing of it is fixed any more", async () => {
    const olds = await ending();
    assert.deepEqual(diff(olds), { changes: true });
    refuseFixed({ ...thing, fixed: { names: "no" } }, olds, wanting(["c"]));
  });
  test("where others were told that it goes, it goes first, and comes as new", async () => {
    const leaver: Definition = {
      ...thing,
      farewell: () => ({ hosts: [hostSpec.parse({ name: "h2", address: "h2" })], title: "bye", run: sh`:` }),
    };
    const { outs } = await update(leaver, here.world, await ending(), wanting(["a", "b"]));
    assert.deepEqual(
      [said("made"), said("undone")],
      [
        ["a", "b", "a", "b"],
        ["b", "a"],
      ],
    );
    assert.deepEqual(diff(outs), {});
    assert.equal("ending" in outs, false);
  });
  test("where nobody was told, what is still there stays", async () => {
    const olds = await ending();
    rmSync(join(folder, "b"));
    const { outs } = await update(thing, here.world, olds, wanting(["a", "b"]));
    assert.deepEqual([said("made"), said("undone")], [["a", "b", "b"], []]);
    assert.equal("ending" in outs, false);
  });
});

describe("failures", () => {
  const broken = () => wanting(["a", "b", "c"], { broken: "b", secret: "s3cret-canary" });
  test("a create that fails half way is stored so that it goes on and can be reverted", async () => {
    const error = await half(create(thing, here.world, broken()));
    assert.equal(error.id, "h1/Thing/one");
    assert.equal(error.properties["__provider"], "exports.handler=…");
    assert.equal(error.properties["incomplete"], true);
    assert.equal(error.properties["schema"], schemaVersion);
    assert.deepEqual(error.properties["drift"], []);
    assert.deepEqual(JSON.parse(JSON.stringify(error.properties)), error.properties, "plain JSON");
    assert.match(error.message, /h1 › Thing one › command b: command b failed/);
    assert.match(error.message, /exit code: 7[\s\S]*cannot make it[\s\S]*what to do/);
    assert.ok(!error.message.includes("s3cret-canary"), error.message);
    assert.deepEqual(error.reasons, [error.message]);
    assert.deepEqual(there(), ["a"]);
    const { outs } = await update(thing, here.world, error.properties, wanting(["a", "b", "c"]));
    assert.deepEqual(said("made"), ["a", "b", "c"]);
    assert.equal("incomplete" in outs, false);
  });
  test("a half-made one is reverted by delete", async () => {
    const error = await half(create(thing, here.world, broken()));
    await remove(thing, here.world, error.properties);
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("a failed update is stored as half-made, too", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    const error = await half(update(thing, here.world, outs, broken()));
    assert.equal(error.properties["incomplete"], true);
  });
  test("rollbackOnFailure takes back at once, last-in first-out, and nothing is stored", async () => {
    const wanted = wanting(["a", "c", "b"], { broken: "b", rollbackOnFailure: true });
    await assert.rejects(
      create(thing, here.world, wanted),
      (error: Error) => !(error instanceof HalfMade) && /has been taken back/.test(error.message),
    );
    assert.deepEqual(said("undone").slice(-2), ["c", "a"]);
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("rollbackOnFailure that cannot take back stores it, with both reasons", async () => {
    const wanted = wanting(["a", "b"], { broken: "b", stuck: "a", rollbackOnFailure: true });
    const error = await half(create(thing, here.world, wanted));
    assert.match(error.message, /cannot make it[\s\S]*could not be taken back either[\s\S]*cannot take it back/);
  });
  test("rollbackOnFailure leaves what an update finds", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    await half(update(thing, here.world, outs, { ...broken(), rollbackOnFailure: true }));
    assert.deepEqual(there(), ["a"]);
  });
  test("a host that cannot be reached stores nothing: nothing was done", async () => {
    await assert.rejects(create(thing, gone("unreachable").world, wanting(["a"])), (e) => !(e instanceof HalfMade));
  });
  test("a connection that breaks in the middle: the next run goes on", async () => {
    host.dieAt(/begin 1$/);
    const error = await half(create(thing, here.world, wanting(["a", "b", "c"])));
    assert.match(error.message, /Thing one › command b: the connection broke/);
    await update(thing, here.world, error.properties, wanting(["a", "b", "c"]));
    assert.deepEqual(there(), ["a", "b", "c"]);
    await remove(thing, here.world, error.properties);
    assert.deepEqual(there(), []);
    noLedger();
  });
});

describe("delete", () => {
  test("twice is fine, also of what never was", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    await remove(thing, here.world, outs);
    await remove(thing, here.world, outs);
    await remove(thing, here.world, wanting(["never"]));
    noLedger();
  });
  test("retain leaves the things and drops the records", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"], { retain: true }));
    await remove(thing, here.world, outs);
    assert.deepEqual(there(), ["a"]);
    noLedger();
  });
  test("needs no argument but host and name: those of an older version do not stop it", async () => {
    const { outs } = await create(thing, here.world, wanting(["a"]));
    await remove(thing, here.world, { ...outs, names: 7, nobody: "knows this" });
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("a host that is gone is an error with the way out", async () => {
    const props = wanting(["a"]);
    await assert.rejects(remove(thing, gone("unreachable").world, props), /no way to it[\s\S]*KUBEXM_FORGET=h1/);
  });
  for (const [name, work] of [
    ["looked at", read],
    ["taken back", remove],
  ] as const)
    test(`a host whose login of the last up is refused when it is ${name}: that another may be written by now is said`, async () => {
      await assert.rejects(
        work(thing, gone("auth").world, wanting(["a"])),
        /login of the last up.* run up without --refresh first/,
      );
    });
  test("what two have in common is not told to stay where all goes", async () => {
    await create(thing, here.world, inputsFor({ folder, names: ["a"] }, "two"));
    await remove(thing, { ...here.world, ending: true }, (await create(thing, here.world, wanting(["a"]))).outs);
    assert.ok(!here.heard.some(({ kind }) => kind === "warning"));
  });
  for (const [name, props, forgotten] of [
    ["forget", { forget: true }, []],
    ["KUBEXM_FORGET", {}, ["h0", "h1"]],
  ] as const)
    test(`${name} accepts the loss, and says so`, async () => {
      const { world, heard } = gone("unreachable");
      await remove(thing, { ...world, forgotten }, wanting(["a"], props));
      assert.match(heard.map(({ text }) => text).join(), /h1 cannot be reached and was forgotten/);
    });
  test("forget does not give up a host whose connection broke, while it still answers", async () => {
    const { outs } = await create(thing, here.world, wanting(["a", "b"]));
    const { world } = here;
    host.dieAt(/ undo command b$/);
    await assert.rejects(remove(thing, { ...world, forgotten: ["h1"] }, outs), /the connection broke/);
    await remove(thing, { ...world, forgotten: ["h1"] }, outs);
    assert.deepEqual(there(), []);
    noLedger();
  });
  test("forget does not accept any other failure", async () => {
    const { world } = gone("exit");
    await assert.rejects(remove(thing, { ...world, forgotten: ["h1"] }, wanting(["a"], { forget: true })));
  });
});

const FIXTURES = join(__dirname, "..", "..", "..", "test", "unit", "fixtures");

for (let shape = 1; shape <= schemaVersion; shape++)
  describe(`state of shape ${shape}`, () => {
    const fixture = JSON.parse(readFileSync(join(FIXTURES, `state-v${shape}.json`), "utf8")) as Inputs;
    const stored = (): Inputs => ({ ...fixture, folder });
    test("has the number of its shape", () => assert.equal(fixture["schema"], shape));
    test("is read", async () => {
      const { drift } = await read(thing, here.world, stored());
      assert.deepEqual(
        drift.map(({ step }) => step),
        ["command a", "command b"],
      );
    });
    test("is updated", async () => {
      await update(thing, here.world, stored(), wanting(["a", "b", "c"]));
      assert.deepEqual(there(), ["a", "b", "c"]);
    });
    test("is of this version then", async () => {
      const { outs } = await update(thing, here.world, stored(), { ...wanting(["a", "b"]), retain: true });
      assert.equal(outs.schema, schemaVersion);
      assert.equal(typeof outs.facts, "string");
    });
    test("needs no connection when only its retaining changes, if it is of this version", async () => {
      const { world, count } = fakeWorld(shape === schemaVersion ? never : () => Promise.resolve(host.remote));
      const { host: old, resource, __provider, names, broken, stuck, secret } = fixture;
      const more = { folder, host: old, resource, __provider, names, broken, stuck, secret };
      await update(thing, world, stored(), { ...more, retain: true, forget: false, rollbackOnFailure: false });
      assert.equal(count.connects, shape === schemaVersion ? 0 : 1);
    });
    const renamed = (): Inputs => ({ ...stored(), host: { ...(fixture["host"] as object), color: "red" }, size: 1 });
    test("is read without the arguments that this version does not know", async () => {
      const { drift } = await read(thing, here.world, renamed());
      assert.deepEqual(
        drift.map(({ step }) => step),
        ["command a", "command b"],
      );
    });
    test("is drift where this version cannot read its arguments, and made anew", async () => {
      const found = await read(thing, here.world, { ...stored(), names: 7 });
      assert.match(found.drift.map((one) => one.found).join(), /^arguments of an earlier version$/);
      assert.deepEqual(diff(found), { changes: true });
      const { outs } = await update(thing, here.world, found, wanting(["a"]));
      assert.deepEqual(there(), ["a"]);
      assert.deepEqual(outs.drift, []);
    });
    const leaving = {
      ...thing,
      farewell: (): Ask => ({
        hosts: [hostSpec.parse({ name: "h1", address: "a" })],
        title: "let it go",
        run: sh`echo gone`,
      }),
    };
    for (const [what, props, told] of [
      ["says farewell without the arguments that this version does not know", {}, /^gone$/m],
      [
        "goes without a farewell where its arguments cannot be read, and says so",
        { names: 7 },
        /no other host could be told/,
      ],
    ] as const)
      test(what, async () => {
        await create(thing, here.world, wanting(["a"]));
        await remove(leaving, here.world, { ...renamed(), ...props });
        assert.match(here.heard.map(({ text }) => text).join("\n"), told);
        assert.deepEqual(there(), []);
        noLedger();
      });
    for (const [what, more] of [
      ["asks no host that was given up", { forgotten: ["h1"] }],
      ["says no farewell where all goes", { ending: true }],
    ] as const)
      test(what, async () => {
        await create(thing, here.world, wanting(["a"]));
        await remove(leaving, { ...here.world, ...more }, stored());
        assert.doesNotMatch(here.heard.map(({ text }) => text).join("\n"), /^gone$/m);
        assert.deepEqual(there(), []);
      });
    test("is deleted", async () => {
      await create(thing, here.world, wanting(["a", "b"]));
      await remove(thing, here.world, stored());
      assert.deepEqual(there(), []);
      noLedger();
    });
  });
