import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { driftCode, driftText } from "../../cli/drift.js";
import { define } from "../../provider/definition";
import { lookForDrift } from "../../provider/drift";
import { RemoteError } from "../../provider/errors";
import { create } from "../../provider/lifecycle";
import type { HostSpec } from "../../provider/ssh/spec";
import { fakeHost } from "../harness/fake-remote";
import { fakeWorld, inputsFor, thing } from "../harness/thing";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-drift-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

define(thing);
const type = "pulumi-nodejs:dynamic/kubexm:Thing";

describe("drift without the engine", () => {
  test("tells what differs, and which hosts could not be seen; other people's resources are left out", async () => {
    const folder = join(scratch, "things");
    mkdirSync(folder);
    const host = fakeHost(`${folder}-host`);
    const made = fakeWorld(() => Promise.resolve(host.remote));
    const { outs } = await create(thing, made.world, inputsFor({ folder, names: ["a", "b"] }));
    const stored = [
      { type, outputs: outs },
      { type: "pulumi:pulumi:Stack", outputs: {} },
      { type: "aws:ec2:Instance", outputs: { host: { name: "other" } } },
    ];
    const clean = await lookForDrift(stored, made.world);
    assert.deepEqual(clean, { drift: [], unseen: [], hosts: 1 });

    rmSync(join(folder, "b"));
    const { drift } = await lookForDrift(stored, made.world);
    assert.deepEqual(
      drift.map(({ host: name, component }) => [name, component]),
      [["h1", "Thing one"]],
    );

    const dark = fakeWorld(() =>
      Promise.reject(new RemoteError("no way to it", { host: "h1", reason: "unreachable" })),
    );
    const { unseen, drift: none } = await lookForDrift(stored, dark.world);
    assert.deepEqual(none, []);
    assert.deepEqual(unseen, [{ host: "h1", why: "h1: no way to it" }]);
  });

  test("a dead host is named, and the others are told all the same; then it ends with 1, else with 2 or 0", async () => {
    const folder = join(scratch, "two");
    mkdirSync(folder);
    const host = fakeHost(`${folder}-host`);
    const { world } = fakeWorld(() => Promise.resolve(host.remote));
    const living = (await create(thing, world, inputsFor({ folder, names: ["a"] }))).outs;
    const dead = { ...living, host: { name: "h2", address: "192.0.2.2" } };
    const some = {
      ...world,
      connect: (spec: HostSpec) =>
        spec.name === "h2"
          ? Promise.reject(new RemoteError("no way to it", { host: "h2", reason: "unreachable" }))
          : Promise.resolve(host.remote),
    };
    const look = () =>
      lookForDrift(
        [dead, living].map((outputs) => ({ type, outputs })),
        some,
      );
    assert.equal(driftCode(await look()), 1);

    rmSync(join(folder, "a"));
    const report = await look();
    assert.equal(driftCode(report), 1);
    assert.match(
      driftText(report, "c.yaml"),
      /^h1 +Thing one +command a +want .*\nh2 +could not be looked at: h2: no way to it\n/,
    );
    assert.match(driftText(report, "c.yaml"), /\n1 difference on 1 host, 1 host not seen\n/);
    assert.equal(driftCode({ ...report, unseen: [] }), 2);
    assert.equal(driftCode({ drift: [], unseen: [] }), 0);
  });

  test("lines that differ stand under what they are of", () => {
    const one = { host: "h1", component: "Chrony c", step: "path /etc/x", want: "sha256=1", found: "sha256=2" };
    const drift = [
      { ...one, lines: ["@@ -1,1 +1,1 @@", "-x", "+a"] },
      { ...one, host: "h2" },
    ];
    assert.equal(
      driftText({ drift, unseen: [], hosts: 2 }, "c.yaml"),
      `h1  Chrony c  path /etc/x  want sha256=1, found sha256=2
    @@ -1,1 +1,1 @@
    -x
    +a
h2  Chrony c  path /etc/x  want sha256=1, found sha256=2
2 differences on 2 hosts
kubexm up --refresh -f c.yaml puts it right`,
    );
  });
});
