import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Context } from "../../provider/change";
import { apply, look, revert } from "../../provider/engine";
import type { Work } from "../../provider/script";
import { sh } from "../../provider/shell";
import { hostSpec } from "../../provider/ssh/spec";
import { command } from "../../provider/steps";
import { fakeHost } from "../harness/fake-remote";

const folder = mkdtempSync(join(tmpdir(), "kubexm-waits-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const file = join(folder, "x");
const marker = command("x", {
  run: sh`printf %s "$answer" >${file}`,
  doneWhen: sh`test -e ${file}`,
  undo: sh`rm -f ${file}`,
});

function box(name: string) {
  const { remote } = fakeHost(join(folder, name));
  const ctx: Context = {
    component: "Box b",
    holder: { id: "stack", run: "run 1", component: "Box b", patience: 30 },
    connect: () => Promise.resolve(remote),
    log: () => undefined,
    tell: () => undefined,
  };
  return { remote, ctx };
}

async function made(name: string, work: Work) {
  const { remote, ctx } = box(name);
  const [seen] = await look(remote, [work]);
  assert.ok(seen);
  return apply(remote, work, seen, ctx);
}

const at = (path: string) =>
  command(path, { run: sh`: >${path}`, doneWhen: sh`test -e ${path}`, undo: sh`rm ${path}` });

for (const [name, what, part] of [
  ["half", "is cut off in the middle of a function", (text: string) => text.slice(0, text.length / 2)],
  ["less", "is cut off between two", (text: string) => text.slice(0, text.lastIndexOf("\n}\n") + 3)],
  ["none", "is empty", () => ""],
] as const)
  test(`a library on a host that ${what} is written anew`, async () => {
    const [one, two] = ["one", "two"].map((word) => join(folder, `${name}-${word}`));
    assert.ok(one !== undefined && two !== undefined);
    await made(name, { owner: "A", steps: [at(one)] });
    const library = join(folder, name, "K", "lib.sh");
    const whole = readFileSync(library, "utf8");
    writeFileSync(library, part(whole));
    await made(name, { owner: "B", steps: [at(two)] });
    assert.equal(readFileSync(library, "utf8"), whole);
    writeFileSync(library, part(whole));
    const { remote, ctx } = box(name);
    await revert(remote, "A", false, ctx);
    assert.deepEqual([existsSync(one), existsSync(two)], [false, true]);
  });

test("what is waited for in vain says why in time, however long it takes to ask", async () => {
  const verify = { title: "it answers", test: sh`sleep 1; echo nobody is there; return 1`, seconds: 6 };
  await assert.rejects(made("one", { owner: "A", steps: [], verify }), /it answers failed[\s\S]*nobody is there/);
});

test("that another host does not take back what it lent is told, and no failure", async () => {
  const lends = {
    title: "a key of m1",
    hosts: [hostSpec.parse({ name: "m1", address: "192.0.2.1" })],
    run: sh`echo key=opensesame`,
    after: sh`echo busy >&2; exit 1`,
  };
  const { changed, notes } = await made("two", { owner: "A", steps: [{ ...marker, ask: () => lends }] });
  assert.deepEqual([changed, readFileSync(file, "utf8")], [["command x"], "key=opensesame"]);
  assert.match(notes.join("\n"), /a key of m1: done[\s\S]*busy/);
});
