import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { define } from "../../provider/definition";
import { lookForDrift } from "../../provider/drift";
import { RemoteError } from "../../provider/errors";
import { create } from "../../provider/lifecycle";
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
});
