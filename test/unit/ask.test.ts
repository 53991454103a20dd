import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ask, type Ask } from "../../provider/ask";
import { RemoteError } from "../../provider/errors";
import { sh } from "../../provider/shell";
import { hostSpec } from "../../provider/ssh/spec";
import { execRemote } from "../harness/exec-remote";
import { raw } from "../harness/step-cases";

const folder = mkdtempSync(join(tmpdir(), "kubexm-ask-"));
after(() => rmSync(folder, { recursive: true }));

const spec = (name: string) => hostSpec.parse({ name, address: name });
const gone = (name: string) =>
  new RemoteError("cannot be reached", { host: name, reason: "unreachable", advice: "look" });
const connect = ({ name }: { name: string }) =>
  name.startsWith("gone") ? Promise.reject(gone(name)) : Promise.resolve(execRemote(name, ["env"]));

const request = (hosts: string[], run: string, more: Partial<Ask> = {}): Ask => ({
  hosts: hosts.map(spec),
  title: "ask",
  run: raw(run),
  ...more,
});

test("the first that has something to say is heard, and is told when it is over", async () => {
  const note = join(folder, "note");
  const after = sh`printf '%s' "$answer" >>${note}`;
  const { text, done } = await ask(request(["a", "b"], "printf 'it is\\n  two lines'", { after }), connect);
  assert.equal(text.reveal(), "it is\n  two lines");
  assert.equal(String(text), "***");
  await done();
  assert.equal(readFileSync(note, "utf8"), "it is\n  two lines");
});
test("nobody has anything to say: that is an answer", async () => {
  assert.equal((await ask(request(["a", "b"], ":"), connect)).text.reveal(), "");
  assert.equal((await ask(request([], "echo x"), connect)).text.reveal(), "");
});
test("one that is gone does not matter while another answers", async () => {
  assert.equal((await ask(request(["gone1", "b"], "echo b"), connect)).text.reveal(), "b");
});
test("nobody answers, and one could not be asked: an error that names it", async () => {
  await assert.rejects(ask(request(["gone1", "b"], ":"), connect), (error: Error) => {
    assert.match(error.message, /gone1: ask: no host could answer/);
    assert.match(error.message, /what to do: Mend one of these hosts/);
    return true;
  });
});
test("a host that fails tells why", async () => {
  await assert.rejects(ask(request(["a"], "echo 'API is down' >&2; exit 1"), connect), /API is down/);
});
test("a no that counts for all is told at once, without advice about hosts that are gone", async () => {
  const asked = join(folder, "asked");
  const run = `echo x >>${asked}; echo 'it would stop' >&2; exit 3`;
  await assert.rejects(ask(request(["gone1", "a", "b"], run), connect), (error: Error) => {
    assert.match(error.message, /^a: ask: refused\n[^]*it would stop$/);
    return true;
  });
  assert.equal(readFileSync(asked, "utf8"), "x\n");
});
