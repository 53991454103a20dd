import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { RemoteError } from "../../provider/errors";
import { schemaVersion, update, type Inputs } from "../../provider/lifecycle";
import { fakeHost } from "../harness/fake-remote";
import { fakeWorld, inputsFor, never, thing } from "../harness/thing";

const folder = mkdtempSync(join(tmpdir(), "kubexm-way-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const gone = (reason: "unreachable" | "auth") =>
  fakeWorld(() => Promise.reject(new RemoteError("no way to it", { host: "h1", reason, advice: "Look." })));

describe("an update that has no say on the host does not connect", () => {
  const base = inputsFor({ folder: "/f", names: ["a"] });
  const settled: Inputs = { ...base, schema: schemaVersion, drift: [] };
  const ways: readonly [string, Inputs][] = [
    ["password", { ...base, host: { ...base.host, password: "new" } }],
    ["private key", { ...base, host: { ...base.host, privateKeyPath: "~/.ssh/other", passphrase: "x" } }],
    ["sudo password", { ...base, host: { ...base.host, sudoPassword: "new" } }],
    ["host key and how it is checked", { ...base, host: { ...base.host, hostKeyChecking: "accept-new" } }],
    ["way and user", { ...base, host: { ...base.host, user: "ops", port: 2222, bastions: [{ address: "b" }] } }],
  ];
  const rows: readonly [string, Inputs][] = [
    ["urn", { ...base, resource: { ...base.resource, urn: "urn:pulumi:s::p::Other$Thing::one" } }],
    ["forget", { ...base, forget: true }],
    ["retain", { ...base, retain: true }],
    ["rollbackOnFailure", { ...base, rollbackOnFailure: true }],
    ["loader", { ...base, __provider: "exports.handler=another" }],
  ];
  for (const [name, news] of rows)
    test(name, async () => {
      const { world, count } = fakeWorld(never);
      const { outs } = await update(thing, world, settled, news);
      assert.equal(count.connects, 0);
      assert.deepEqual(outs, { ...news, schema: schemaVersion, drift: [] });
    });
  for (const [name, news] of ways)
    test(`another ${name} only proves that the way leads there; of a host that is away it is believed`, async () => {
      const outs = { ...news, schema: schemaVersion, drift: [] };
      const host = fakeHost(join(folder, "host"));
      const { world } = fakeWorld(() => Promise.resolve(host.remote));
      assert.deepEqual(await update(thing, world, settled, news), { outs });
      assert.deepEqual(host.ran, ["log in"]);
      assert.deepEqual(await update(thing, gone("unreachable").world, settled, news), { outs });
      await assert.rejects(update(thing, gone("auth").world, settled, news), /no way to it/);
    });
  const touching: readonly [string, Inputs, Inputs][] = [
    ["an argument", settled, { ...base, names: ["a", "b"] }],
    ["the address", settled, { ...base, host: { ...base.host, address: "192.0.2.2" } }],
    ["drift", { ...settled, drift: [{ step: "a", want: "x", found: "y" }] }, base],
    ["a half-made create", { ...settled, incomplete: true }, base],
    ["an older shape", { ...settled, schema: 0 }, base],
    ["nothing new, as after a killed run", settled, base],
  ];
  for (const [name, olds, news] of touching)
    test(`but it does for ${name}`, async () => {
      const { world, count } = fakeWorld(never);
      await assert.rejects(update(thing, world, olds, news), /nobody may connect/);
      assert.equal(count.connects, 1);
    });
});
