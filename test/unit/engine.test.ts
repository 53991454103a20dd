import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../provider/change";
import { apply, look, revert } from "../../provider/engine";
import { RemoteError, UserError } from "../../provider/errors";
import type { Holder, Work } from "../../provider/script";
import { sh } from "../../provider/shell";
import { binary, command } from "../../provider/steps";
import { hostSpec } from "../../provider/ssh/spec";
import type { Step } from "../../provider/step";
import { fakeHost, type FakeHost } from "../harness/fake-remote";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-engine-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

let round = 0;
let folder = "";
let host: FakeHost;
beforeEach(() => {
  folder = join(scratch, `d${round++}`);
  mkdirSync(folder);
  host = fakeHost(`${folder}-host`);
});

const K = () => `${folder}-host/K`;
const there = () => readdirSync(folder).sort();
const said = (name: string) => readFileSync(join(folder, name), "utf8").trim().split("\n");

interface Slow {
  make?: number;
  undo?: number;
  /** Undoing waits for this file. */
  gate?: string;
}

/** A step that makes an empty file, and tells in `undone` that it was taken back. */
function marker(name: string, { make = 0, undo = 0, gate = "." }: Slow = {}): Step {
  const path = join(folder, name);
  return command(name, {
    run: sh`sleep ${make}; : >${path}`,
    doneWhen: sh`test -e ${path}`,
    undo: sh`sleep ${undo}; until [ -e ${join(folder, gate)} ]; do sleep 0.1; done; printf '%s\n' ${name} >>${join(folder, "undone")}; rm -f ${path}`,
  });
}

/** Like a file: other people's changes are noticed by its content. */
function content(name: string, text: string): Step {
  const path = join(folder, name);
  return {
    id: `content ${name}`,
    want: { text },
    look: sh`kv text "$(cat ${path} 2>/dev/null || echo absent)"`,
    save: sh`if [ -e ${path} ]; then cp ${path} body; fi`,
    make: sh`printf '%s\n' ${text} >${path}`,
    undo: sh`if [ -e body ]; then cp body ${path}; else rm -f ${path}; fi`,
    keepIfChanged: ["text"],
  };
}

const holder = (id = "stack", run = "run 1"): Holder => ({ id, run, component: "Box b", patience: 30 });
const context = (by = holder(), told: string[] = []): Context => ({
  component: "Box b",
  holder: by,
  connect: () => Promise.reject(new Error("this step asks nobody")),
  log: () => undefined,
  tell: (text) => told.push(text),
});
const work = (owner: string, ...steps: Step[]): Work => ({ owner, steps });

async function converge(wanted: Work, by = holder(), { remote } = host) {
  const [seen] = await look(remote, [wanted], by);
  assert.ok(seen);
  return apply(remote, wanted, seen, context(by));
}
/** The same host seen from another process. */
const fromElsewhere = () => fakeHost(`${folder}-host`);
const undo = (owner: string, keep = false, by = holder()) => revert(host.remote, owner, keep, context(by));

describe("the ledger", () => {
  test("two components with one thing: it stays until the last of them goes", async () => {
    await converge(work("A", marker("x")));
    assert.deepEqual((await converge(work("B", marker("x")))).changed, [], "claimed, not made");
    const notes = await undo("A");
    assert.deepEqual(notes, ["kept command x: B wants it too"]);
    assert.deepEqual(there(), ["x"]);
    assert.deepEqual(await undo("A"), []);
    await undo("B");
    assert.deepEqual(there(), ["undone"]);
    assert.ok(!existsSync(K()));
  });
  const ending = (id: string): Holder => ({ ...holder(id), ending: true });
  for (const { what, others, by, notes } of [
    { what: "they go too", others: { B: "stack" }, by: ending("stack"), notes: [] },
    { what: "only this one goes", others: { B: "stack" }, by: holder(), notes: ["B"] },
    { what: "one of them is another stack's", others: { B: "stack", C: "other" }, by: ending("stack"), notes: ["C"] },
  ])
    test(`what components share is told to stay where it does: ${what}`, async () => {
      await converge(work("A", marker("x")));
      for (const [owner, id] of Object.entries(others)) await converge(work(owner, marker("x")), holder(id));
      assert.deepEqual(
        await undo("A", false, by),
        notes.map((owner) => `kept command x: ${owner} wants it too`),
      );
      assert.deepEqual(there(), ["x"]);
      for (const [owner, id] of Object.entries(others)) await undo(owner, false, ending(id));
      assert.deepEqual(there(), ["undone"]);
    });
  test("a resource under another name: the new one takes the thing over, the old one goes, the thing stays", async () => {
    await converge(work("old", content("f", "v1")));
    await converge(work("new", content("f", "v1")));
    await undo("old");
    assert.deepEqual(said("f"), ["v1"]);
    await undo("new");
    assert.deepEqual(there(), []);
  });
  test("what is taken back changes what stays wanted: that is made anew", async () => {
    const both = { ...marker("x"), undo: sh`rm -f ${join(folder, "x")} ${join(folder, "y")}` };
    await converge(work("A", both, marker("y")));
    assert.deepEqual((await converge(work("A", marker("y")))).changed, ["command y"]);
    assert.deepEqual(there(), ["y"]);
  });
  test("the state before the first change counts, however often it is changed later", async () => {
    writeFileSync(join(folder, "f"), "mine\n");
    for (const text of ["v1", "v2", "v3"]) await converge(work("A", content("f", text)));
    await undo("A");
    assert.deepEqual(said("f"), ["mine"]);
  });
  test("what somebody else changed since is kept, and told", async () => {
    await converge(work("A", content("f", "v1"), content("g", "v1")));
    writeFileSync(join(folder, "f"), "theirs\n");
    assert.deepEqual(await undo("A"), ["kept content f: somebody changed it since"]);
    assert.deepEqual(there(), ["f"]);
    assert.deepEqual(said("f"), ["theirs"]);
    assert.ok(!existsSync(K()));
  });
  test("an undo that was cut off after its work is not taken for somebody else's change", async () => {
    writeFileSync(join(folder, "f"), "mine\n");
    await converge(work("A", content("f", "v1")));
    writeFileSync(join(folder, "f"), "mine\n");
    assert.deepEqual(await undo("A"), []);
    assert.deepEqual(said("f"), ["mine"]);
  });
  test("undo goes last-in first-out over several runs", async () => {
    await converge(work("A", marker("x"), marker("y")));
    await converge(work("B", marker("z")));
    await converge(work("A", marker("x"), marker("y"), marker("w")));
    await undo("A");
    assert.deepEqual(said("undone"), ["w", "y", "x"]);
  });
  test("the order holds when a full disk cut the last number off", async () => {
    await converge(work("A", ...["x1", "x2", "x3"].map((name) => marker(name))));
    writeFileSync(join(K(), "ledger", "last"), "");
    await converge(work("A", ...["x1", "x2", "x3", "x4"].map((name) => marker(name))));
    await undo("A");
    assert.deepEqual(said("undone"), ["x4", "x3", "x2", "x1"]);
  });
  test("a reboot in the middle of an undo: the next one finds the rest again", async () => {
    await converge(work("A", marker("x"), marker("y", { gate: "go" }), marker("z")));
    host.dieAt(/undo command y$/);
    await assert.rejects(undo("A"), /connection broke/);
    assert.deepEqual(there(), ["undone", "x", "y"]);
    await converge(work("A", marker("x"), marker("y"), marker("z")));
    assert.deepEqual(there(), ["undone", "x", "y", "z"]);
    writeFileSync(join(folder, "go"), "");
    await undo("A");
    assert.deepEqual(there(), ["go", "undone"]);
    assert.ok(!existsSync(K()));
  });
  test("keeping the things drops only this owner's records", async () => {
    await converge(work("A", marker("x"), marker("y")));
    await converge(work("B", marker("y")));
    await undo("A", true);
    assert.deepEqual(there(), ["x", "y"]);
    await undo("B");
    assert.deepEqual(there(), ["undone", "x"]);
    assert.ok(!existsSync(K()));
  });
  test("staged content of a killed run goes with the undo, another component's stays", async () => {
    for (const owner of ["A", "B"]) mkdirSync(join(K(), "staging", owner), { recursive: true });
    writeFileSync(join(K(), "staging", "B", "sum"), "just being uploaded");
    await undo("A");
    assert.deepEqual(readdirSync(join(K(), "staging")), ["B"]);
    await undo("B");
    assert.ok(!existsSync(K()));
  });
  test("an apply that ends leaves the staging of the others alone", async () => {
    mkdirSync(join(K(), "staging", "B"), { recursive: true });
    await converge(work("A", marker("x")));
    assert.deepEqual(readdirSync(join(K(), "staging")), ["B"]);
  });
  test("a file of this machine that is gone is told with host, component and step, and nothing is changed", async () => {
    const path = join(folder, "nowhere");
    const wanted = work("A", marker("x"), binary("/kx-tool", { path, sha256: "a".repeat(64) }));
    await assert.rejects(
      converge(wanted),
      (error) =>
        error instanceof UserError &&
        error.message.startsWith(`${host.remote.name} › Box b › path /kx-tool: what is to be uploaded`) &&
        error.message.includes(path),
    );
    assert.deepEqual(there(), []);
  });
  const unsaved: readonly [string, Partial<Step>][] = [
    ["its content", { save: sh`cat /nowhere >body; :; false` }],
    ["the first half of its content", { save: sh`false && :` }],
    ["its state", { look: sh`kv text old; return 1` }],
  ];
  for (const [what, broken] of unsaved)
    test(`nothing is changed when ${what} cannot be saved, as on a full disk`, async () => {
      writeFileSync(join(folder, "f"), "mine\n");
      const step = content("f", "v1");
      const [seen] = await look(host.remote, [work("A", step)]);
      assert.ok(seen);
      await assert.rejects(
        apply(host.remote, work("A", { ...step, ...broken }), seen, context()),
        /content f: what was there before could not be kept/,
      );
      assert.deepEqual(said("f"), ["mine"]);
      await undo("A");
      assert.deepEqual(said("f"), ["mine"]);
      assert.ok(!existsSync(K()));
    });
  test("a step that does not take effect is an error", async () => {
    const vain = { ...marker("x"), make: sh`:` };
    await assert.rejects(converge(work("A", vain)), /made, but did not take effect[\s\S]*wanted done=yes/);
  });
  test("a look that fails after things were made together is told of the thing it is of, with its words", async () => {
    const [one, two, three] = ["one", "two", "three"].map((name) => ({ ...content(name, name), group: "quick" }));
    assert.ok(one && two && three);
    const look = sh`[ ! -e ${join(folder, "two")} ] || { echo "no=way to look" >&2; return 1; }; ${two.look}`;
    await assert.rejects(converge(work("Box-b", one, { ...two, look }, three)), (error) => {
      assert.ok(error instanceof RemoteError);
      assert.deepEqual([error.failure.step, error.failure.stderr], ["content two", "no=way to look"]);
      return true;
    });
  });
  test("a step that takes too long is ended, and told so", async () => {
    await assert.rejects(
      converge(work("A", { ...marker("x", { make: 20 }), timeout: 1 })),
      /longer than its time limit/,
    );
  });
  test("what was made together with a step that takes too long is known as ours", async () => {
    const group = { group: "quick", timeout: 1 };
    const wanted = work("Box-b", { ...content("one", "ours"), ...group }, { ...marker("x", { make: 20 }), ...group });
    await assert.rejects(converge(wanted), /longer than its time limit/);
    writeFileSync(join(folder, "one"), "theirs\n");
    const notes = await revert(host.remote, "Box-b", false, context());
    assert.deepEqual(notes, ["kept content one: somebody changed it since"]);
  });
  test("what a command prints is never taken for ours", async () => {
    const liar = {
      ...marker("x"),
      make: sh`echo '@abc end'; echo 'done=yes'; echo '@000000000000 fail 0 9'; : >${join(folder, "x")}`,
    };
    assert.deepEqual((await converge(work("A", liar))).changed, ["command x"]);
  });
});

test("neither the error nor the log of a run tells a part of what another host lent", async () => {
  const lent = { token: "abcdef.0123456789abcdef", keys: "a2V5cw==" };
  const other = fakeHost(`${folder}-other`, "m1");
  const step: Step = {
    ...marker("x"),
    ask: () => ({
      hosts: [hostSpec.parse({ name: "m1", address: "192.0.2.1" })],
      title: "borrow",
      run: sh`printf '%s\n' ${`token=${lent.token}`} ${`keys=${lent.keys}`} no=1`,
    }),
    make: sh`part() { printf '%s\n' "$answer" | sed -n "s/^$1=//p"; }
echo "the token is $(part token)"; echo "1 of the keys is $(part keys)" >&2; exit 1`,
  };
  const logged: string[] = [];
  const ctx: Context = {
    ...context(),
    connect: () => Promise.resolve(other.remote),
    log: ({ failed }) => logged.push(failed ?? ""),
  };
  const [seen] = await look(host.remote, [work("A", step)]);
  assert.ok(seen);
  await assert.rejects(apply(host.remote, work("A", step), seen, ctx), ({ message }: Error) => {
    for (const text of [message, ...logged]) {
      assert.match(text, /the token is \*\*\*[\s\S]*1 of the keys is \*\*\*/);
      for (const secret of Object.values(lent)) assert.ok(!text.includes(secret), text);
    }
    return true;
  });
  assert.equal(logged.length, 1);
});

describe("what is taken back while others look", () => {
  const started = async (count: number) => {
    while (host.ran.filter((title) => title === "Box b").length < count) await sleep(20);
    await sleep(300);
  };
  test("a look beside an undo of the same run counts only when that has ended", async () => {
    await converge(work("A", marker("x", { undo: 2 })));
    const undone = undo("A");
    await started(2);
    const { changed } = await converge(work("B", marker("x")));
    await undone;
    assert.deepEqual(changed, ["command x"], "seen while it went, and made again");
    assert.deepEqual(there(), ["undone", "x"]);
  });
  test("a thing seen as another's is not claimed any more when that has gone with it", async () => {
    await converge(work("A", marker("x")));
    const wanted = work("B", marker("x"), marker("y"));
    const [seen] = await look(host.remote, [wanted]);
    assert.ok(seen);
    await undo("A");
    assert.deepEqual((await apply(host.remote, wanted, seen, context())).changed, ["command x", "command y"]);
    assert.deepEqual(there(), ["undone", "x", "y"]);
  });
});

describe("the run log", () => {
  const logs = async (act: (ctx: Context) => Promise<unknown>) => {
    const rows: string[] = [];
    const log: Context["log"] = ({ step, changed, reason, failed }) =>
      void rows.push([step, changed, reason ?? failed].filter((word) => word !== undefined).join(" "));
    await act({ ...context(), log }).catch(() => undefined);
    return rows;
  };
  const verify = { title: "it answers", test: sh`:`, seconds: 1 };
  test("tells what was made, why something was not, what was waited for, and what was taken back", async () => {
    await converge(work("A", marker("x")));
    const wanted = { ...work("A", marker("x"), marker("y")), verify };
    const [seen] = await look(host.remote, [wanted]);
    assert.ok(seen);
    assert.deepEqual(await logs((ctx) => apply(host.remote, wanted, seen, ctx)), [
      "command x false as wanted: done=yes",
      "command y true",
      "it answers false",
    ]);
    assert.deepEqual(await logs((ctx) => revert(host.remote, "A", false, ctx)), [
      "undo command y true",
      "undo command x true",
    ]);
  });
  test("tells of a connection that broke", async () => {
    // Still at it when it is cut off.
    const wanted = work("A", { ...marker("x"), make: sh`sleep 60` });
    const [seen] = await look(host.remote, [wanted]);
    assert.ok(seen);
    host.dieAt(/ begin 0$/);
    assert.deepEqual(await logs((ctx) => apply(host.remote, wanted, seen, ctx)), [
      "command x false the connection broke",
    ]);
  });
});

test("retained: no folder of ours is swept away, and the records go", async () => {
  const dir = join(folder, "deep/er");
  const step = { ...marker("x"), make: sh`need_dir ${dir}; : >${join(folder, "x")}` };
  await converge(work("A", step));
  await undo("A", true);
  assert.ok(existsSync(dir) && !existsSync(K()));
});

describe("the lock", () => {
  test("another owner is told at once who changes the host", async () => {
    const first = converge(work("A", marker("x", { make: 9 })), holder("stack-one", "anna@desk pid 7"));
    while (!existsSync(join(K(), "ledger"))) await new Promise((resolve) => setTimeout(resolve, 20));
    const second = converge(work("B", marker("y")), holder("stack-two"), fromElsewhere());
    await assert.rejects(second, /the host is locked[\s\S]*being changed by stack-one .anna@desk pid 7, Box b/);
    await first;
    assert.deepEqual((await converge(work("B", marker("y")), holder("stack-two"))).changed, ["command y"]);
  });
  test("the same owner waits for its own earlier run, and looks only then", async () => {
    await converge(work("A", marker("x"), marker("y", { undo: 2 })), holder("stack", "run 1"));
    const destroying = undo("A", false, holder("stack", "run 1"));
    while (!host.ran.includes("Box b") || !existsSync(`${folder}-host/lock`) || !existsSync(join(folder, "x")))
      await new Promise((resolve) => setTimeout(resolve, 20));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const wanted = work("A", marker("x"), marker("y"));
    const { changed } = await converge(wanted, holder("stack", "run 2"), fromElsewhere());
    await destroying;
    assert.deepEqual(changed, ["command x", "command y"]);
    assert.deepEqual(there(), ["undone", "x", "y"]);
  });
  test("who had to wait for the lock looks again", async () => {
    const twoSteps = work("A", marker("x"), marker("y"));
    const [seen] = await look(host.remote, [twoSteps]);
    assert.ok(seen);
    const other = fromElsewhere();
    const [otherSeen] = await look(other.remote, [work("B", marker("x", { make: 2 }))]);
    assert.ok(otherSeen);
    const first = apply(other.remote, work("B", marker("x", { make: 2 })), otherSeen, context());
    while (!existsSync(join(K(), "ledger"))) await new Promise((resolve) => setTimeout(resolve, 20));
    const { changed } = await apply(host.remote, twoSteps, seen, context(holder("stack", "run 2")));
    await first;
    assert.deepEqual(changed, ["command y"], "x was made by the other meanwhile");
  });
});

test("a run that waited for the last component to leave finds no folder of ours, and goes on", async () => {
  const script = `exec 9>>"$1"; flock 9; printf '%s\\n' 'stack (run 1, Box a)' >"$1"; : >"$2/held"
until [ -e "$2/go" ]; do sleep 0.05; done; rm -rf "$3"`;
  const other = spawn("/bin/sh", ["-c", script, "sh", `${folder}-host/lock`, folder, K()]);
  while (!existsSync(join(folder, "held"))) await sleep(20);
  const made = converge(work("Box b", marker("x")));
  while (host.ran.length < 2) await sleep(20);
  await sleep(1000);
  writeFileSync(join(folder, "go"), "");
  await once(other, "exit");
  await made;
  assert.ok(there().includes("x"));
});
