import assert from "node:assert/strict";
import fs, {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, mock, test } from "node:test";
import { z } from "zod";
import { tellOfJournal } from "../../cli/home.js";
import { beginJournal, endJournal, lostOf, withJournal } from "../../cli/journal.js";
import { settlePending } from "../../cli/pending.js";
import { markOf } from "../../cli/state-file.js";
import { define, type Definition } from "../../provider/definition";
import type { DynamicProvider } from "../../provider/dynamic";
import { type Entry, entriesIn, journaled } from "../../provider/journal";
import { HalfMade, type Inputs } from "../../provider/lifecycle";

const folder = mkdtempSync(join(tmpdir(), "kubexm-journal-"));
let round = 0;
let path = "";
let env = { KUBEXM_JOURNAL: path, PULUMI_CONFIG_PASSPHRASE: "pass" };
after(() => rmSync(folder, { recursive: true, force: true }));
// A process holds its journal open.
beforeEach(() => {
  path = join(folder, `journal${round++}`);
  env = { ...env, KUBEXM_JOURNAL: path };
});

const urnOf = (name: string, kind = "Thing") =>
  `urn:pulumi:s::kubexm::kubexm:index:Cluster$pulumi-nodejs:dynamic/kubexm:${kind}::${name}`;
const inputsOf = (name: string, more: Inputs = {}): Inputs => ({
  host: { name: "h1" },
  resource: { name, urn: urnOf(name) },
  ...more,
});

describe("a provider with a journal", () => {
  const thing: Definition = { kind: "Thing", about: "", args: z.object({}), secrets: ["token"], steps: () => [] };
  define(thing);
  const failing = (error: Error) => () => Promise.reject(error);
  const base: DynamicProvider = {
    check: (_, news) => Promise.resolve({ inputs: news, failures: [] }),
    diff: () => Promise.resolve({}),
    create: (inputs) => Promise.resolve({ id: "i", outs: { ...inputs, drift: [] } }),
    read: (id, props) => Promise.resolve({ id, props }),
    update: (_id, _olds, news) => Promise.resolve({ outs: news }),
    delete: () => Promise.resolve(),
  };
  const half = new HalfMade("i", { half: true }, new Error("the disk is full"));
  const inputs = inputsOf("a");
  const told = (op: string, became: object) => [
    { at: "begin", op, urn: urnOf("a"), inputs, secret: ["revealed", "token"] },
    { at: "end", urn: urnOf("a"), became },
  ];
  type Use = (provider: DynamicProvider) => Promise<unknown>;
  const create: Use = (provider) => provider.create(inputs);
  const update: Use = (provider) => provider.update("i", { old: true }, inputs);
  const cases: readonly [string, Partial<DynamicProvider>, Use, object[]][] = [
    ["a create", {}, create, told("create", { what: "made", outs: { ...inputs, drift: [] } })],
    [
      "a create that comes half way",
      { create: failing(half) },
      create,
      told("create", { what: "half", outs: { half: true }, reasons: ["the disk is full"] }),
    ],
    ["a create that does nothing", { create: failing(new Error("no")) }, create, told("create", { what: "unchanged" })],
    ["an update", {}, update, told("update", { what: "made", outs: inputs })],
    ["a delete", {}, (provider) => provider.delete("i", inputs), told("delete", { what: "gone" })],
    ["a look", {}, (provider) => provider.read("i", inputs), []],
  ];
  for (const [what, more, use, entries] of cases)
    test(`tells of ${what}`, async () => {
      await use(journaled("Thing", { ...base, ...more }, env)).catch(() => undefined);
      assert.deepEqual(existsSync(path) ? entriesIn(path, "pass") : [], entries);
    });

  test("has nothing in clear, and can be read with its passphrase only", async () => {
    const provider = journaled("Thing", base, env);
    await provider.create(inputsOf("a", { token: "canary", host: { name: "h1", password: "canary" } }));
    assert.doesNotMatch(readFileSync(path, "latin1"), /canary|"urn"/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const [begin] = entriesIn(path, "pass");
    assert.deepEqual(begin?.at === "begin" && begin.secret, ["revealed", "token", "host"]);
    const other = { PULUMI_CONFIG_PASSPHRASE: "other" };
    assert.throws(() => lostOf(path, "", other), /another passphrase/);
    endJournal(path, "", other);
    assert.equal(existsSync(path), true);
  });
  test("whose last line is cut off has not begun with that", async () => {
    await create(journaled("Thing", base, env));
    appendFileSync(path, readFileSync(path, "utf8").slice(0, 40));
    assert.equal(entriesIn(path, "pass").length, 2);
  });
  test("has it on the disk that something begins before a host is touched", async () => {
    const order: string[] = [];
    const { fdatasync } = fs;
    const watched = mock.method(fs, "fdatasync", (file: number, done: fs.NoParamCallback) =>
      fdatasync(file, (error) => {
        order.push("disk");
        done(error);
      }),
    );
    const touch = (inputs: Inputs) => Promise.resolve({ id: "i", outs: { ...inputs, at: order.push("host") } });
    await create(journaled("Thing", { ...base, create: touch }, env));
    watched.mock.restore();
    assert.deepEqual(order, ["disk", "host"]);
  });
  test("whose line a full disk cut off goes on with the next that there is room for", async () => {
    const provider = journaled("Thing", base, env);
    for (const there of [false, true]) {
      const write = mock.method(fs, "appendFileSync", (file: string, text: string) => {
        write.mock.restore();
        fs.appendFileSync(file, text.slice(0, 40));
        throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
      });
      await assert.rejects(create(provider), /ENOSPC/);
      await create(provider);
      assert.equal(entriesIn(path, "pass").length, there ? 4 : 2);
    }
  });
  test("that cannot be written touches no host", async () => {
    let touched = false;
    const create = () => Promise.resolve({ id: "i", outs: { touched: (touched = true) } });
    const nowhere = { ...env, KUBEXM_JOURNAL: join(folder, "no", "journal") };
    await assert.rejects(journaled("Thing", { ...base, create }, nowhere).create(inputs), /ENOENT/);
    assert.equal(touched, false);
  });
  test("is none where the run wants none", async () => {
    await create(journaled("Thing", base, { PULUMI_CONFIG_PASSPHRASE: "pass" }));
    assert.equal(existsSync(path), false);
  });
});

describe("the state of a run that was killed", () => {
  const begin = (op: "create" | "update" | "delete", name: string, more: Inputs = {}): Entry => ({
    at: "begin",
    op,
    urn: urnOf(name),
    inputs: inputsOf(name, more),
    secret: ["token"],
  });
  const made = (name: string, outs: Inputs = {}): Entry => ({
    at: "end",
    urn: urnOf(name),
    became: { what: "made", outs: { ...inputsOf(name), ...outs } },
  });
  const end = (name: string, what: "gone" | "unchanged"): Entry => ({ at: "end", urn: urnOf(name), became: { what } });
  const provider = { urn: "p", custom: true, id: "1", type: "pulumi:providers:pulumi-nodejs" };
  const there = (name: string, dependencies: string[] = []) => ({
    urn: urnOf(name),
    custom: true,
    id: `h1/Thing/${name}`,
    type: "pulumi-nodejs:dynamic/kubexm:Thing",
    inputs: inputsOf(name),
    outputs: inputsOf(name),
    provider: "p::1",
    dependencies: dependencies.map((other) => urnOf(other)),
    propertyDependencies: {},
  });
  const after = (resources: object[], entries: readonly Entry[]) =>
    settlePending(withJournal({ deployment: { resources: resources as never } }, entries, "salt")).deployment;
  /** Names, with what they stand on and how they are. */
  const brief = (resources: object[], entries: readonly Entry[]) =>
    (after(resources, entries).resources ?? [])
      .filter(({ type }) => type.endsWith("Thing"))
      .map(({ urn, dependencies = [], outputs = {}, initErrors = [] }) => {
        const names = dependencies.map((other) => other.split("::").at(-1)).join(",");
        const marks = ["incomplete", "made", "ending", "new"].filter((key) => outputs[key] === true);
        return [urn.split("::").at(-1), `<${names}`, ...marks, ...initErrors].join(" ");
      });

  const cases: readonly [string, object[], readonly Entry[], string[]][] = [
    ["nothing was done", [there("a")], [], ["a <"]],
    ["a first one was made", [], [begin("create", "a"), made("a")], ["a <"]],
    [
      "what is made stands on all that had ended when it began",
      [],
      [
        begin("create", "a"),
        begin("create", "b"),
        made("a"),
        begin("create", "c"),
        made("b"),
        made("c"),
        begin("create", "d"),
        made("d"),
      ],
      ["a <", "b <", "c <a", "d <b,c"],
    ],
    [
      "and on all that was there before",
      [provider, there("a"), there("b", ["a"]), there("c")],
      [begin("create", "d"), made("d")],
      ["a <", "b <a", "c <", "d <b,c"],
    ],
    ["a create did nothing", [], [begin("create", "a"), end("a", "unchanged")], []],
    ["a create had begun", [], [begin("create", "a")], ["a < incomplete interrupted while creating"]],
    [
      "an update came to its end",
      [provider, there("a")],
      [begin("update", "a"), made("a", { new: true })],
      ["a < new"],
    ],
    [
      "an update had begun",
      [provider, there("a")],
      [begin("update", "a")],
      ["a < incomplete made interrupted while updating"],
    ],
    [
      "a delete had begun",
      [provider, there("a")],
      [begin("delete", "a")],
      ["a < incomplete made ending interrupted while deleting"],
    ],
    ["one is gone", [provider, there("a"), there("b", ["a"])], [begin("delete", "a"), end("a", "gone")], ["b <"]],
    [
      "one is replaced, and another still stands on it",
      [provider, there("a"), there("b", ["a"])],
      [begin("delete", "a"), end("a", "gone"), begin("create", "a"), made("a", { new: true })],
      ["a < new", "b <a"],
    ],
    [
      "one was to be replaced, and is half there",
      [provider, there("a"), there("b", ["a"])],
      [begin("delete", "a"), end("a", "gone"), begin("create", "a")],
      ["a < incomplete interrupted while creating", "b <a"],
    ],
    [
      "one that was to be replaced is gone only",
      [provider, there("a"), there("b", ["a"])],
      [begin("delete", "a"), end("a", "gone"), begin("create", "c")],
      ["b <", "c <b incomplete interrupted while creating"],
    ],
    [
      "one came half way",
      [],
      [
        begin("create", "a"),
        {
          at: "end",
          urn: urnOf("a"),
          became: { what: "half", outs: { incomplete: true }, reasons: ["full"] },
        },
      ],
      ["a < incomplete full"],
    ],
  ];
  for (const [what, resources, entries, told] of cases)
    test(`is as it would have been: ${what}`, () => assert.deepEqual(brief(resources, entries), told));

  for (const [what, entries] of [
    ["came again", [begin("create", "a"), made("a")]],
    ["was about to come again", [begin("create", "a")]],
  ] as const)
    test(`has what an earlier run had only taken away, to replace it, and ${what}`, () => {
      const [, one] = after([provider, { ...there("a"), pendingReplacement: true }], entries).resources ?? [];
      assert.deepEqual([one?.urn, one?.["pendingReplacement"]], [urnOf("a"), undefined]);
    });
  test("has one that Pulumi tells of, too, once", () => {
    const { urn, type, inputs } = there("a");
    const pending_operations = [{ resource: { urn, type, inputs }, type: "creating" }];
    const state = withJournal({ deployment: { resources: [], pending_operations } }, [begin("create", "a")], "salt");
    const ours = settlePending(state).deployment.resources?.filter((resource) => resource.urn === urn);
    assert.equal(ours?.length, 1);
  });
  test("has its secrets marked for Pulumi to encrypt, and what a first run lacks: its provider and its salt", () => {
    const { resources = [], secrets_providers: secrets } = after(
      [],
      [begin("create", "a", { token: "canary" }), made("a", { token: "canary" })],
    );
    const [one, two] = resources;
    assert.ok(one && two);
    assert.equal(two["provider"], `${one.urn}::${one.id}`);
    assert.equal(one.type, "pulumi:providers:pulumi-nodejs");
    for (const props of [two.inputs, two.outputs])
      assert.equal((props?.["token"] as { plaintext?: string }).plaintext, '"canary"');
    assert.deepEqual(secrets, { type: "passphrase", state: { salt: "salt" } });
  });
});

describe("what a state lacks of a run", () => {
  const state = join(folder, "state.json");
  const a = inputsOf("a");
  const thing: Definition = { kind: "Run", about: "", args: z.object({}), steps: () => [] };
  define(thing);
  /** A run that makes `a` and, where it is killed, does not come to the end of `b`. */
  async function run(killed: boolean): Promise<void> {
    writeFileSync(state, "before");
    beginJournal(path, state);
    const make = ({ resource }: Inputs) =>
      killed && (resource as { name: string }).name === "b"
        ? new Promise<never>(() => undefined)
        : Promise.resolve({ id: "i", outs: a });
    const provider = journaled("Run", { create: make } as unknown as DynamicProvider, env);
    const made = [a, inputsOf("b")].map((inputs) => provider.create(inputs));
    await Promise.all(killed ? made.slice(0, 1) : made);
  }
  const names = () => lostOf(path, state, env).map((entry) => `${entry.at} ${entry.urn.split("::").at(-1)}`);

  test("is all of it, where Pulumi did not come to write the state, whatever the clock says", async () => {
    await run(true);
    utimesSync(path, 1, 1);
    endJournal(path, state, env);
    assert.deepEqual(names(), ["begin a", "begin b", "end a"]);
    const told: string[] = [];
    tellOfJournal({ journal: path }, (line) => told.push(line));
    assert.match(told.join(), /was killed, and the state does not know/);
  });
  test("is what has no end, where it did: Pulumi takes what a killed provider was at for not begun", async () => {
    await run(true);
    writeFileSync(state, "after");
    endJournal(path, state, env);
    assert.deepEqual(names(), ["begin b"]);
  });
  test("is nothing, where the run came to its end: the journal goes", async () => {
    await run(false);
    writeFileSync(state, "after");
    endJournal(path, state, env);
    assert.equal(existsSync(path), false);
    tellOfJournal({ journal: path }, (line) => assert.fail(line));
  });
  test("of a packed state is told in the same way", () => {
    const packed = join(folder, "packed.json");
    const marks = ["before", "after", "after"].map((text) => {
      writeFileSync(`${packed}.gz`, text);
      return markOf(packed);
    });
    assert.notEqual(marks[0], marks[1]);
    assert.equal(marks[1], marks[2]);
  });
});
