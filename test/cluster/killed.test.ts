import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { withCluster } from "../harness/cluster";
import { seeded } from "../harness/seeded";
import { killTree } from "../harness/whole-tree";

/** More of them for a long look: KUBEXM_TRIES. In CI each costs two minutes. */
const TRIES = Number(process.env["KUBEXM_TRIES"] ?? 1);

test("killed with all it started, at any moment of up and of destroy: the next run finishes it, and nothing stays", async (t) => {
  const random = seeded("killed clusters");
  await withCluster({ masters: ["m1"], workers: ["w1"] }, async (cluster) => {
    const { kubexm, kubectl, differences, command } = cluster;
    const killedAfter = async (verb: "up" | "destroy", seconds: number): Promise<boolean> => {
      const [program = "", ...args] = command([verb]);
      const child = spawn(program, args, { cwd: cluster.cwd, stdio: "ignore", detached: true });
      const over = once(child, "exit");
      const ended = await Promise.race([over.then(() => true), sleep(seconds * 1000).then(() => false)]);
      if (!ended && child.pid !== undefined) killTree(child.pid);
      await over;
      return !ended;
    };
    for (let i = 0; i < TRIES; i++) {
      const [making, taking] = [random.below(60) + 3, random.below(15) + 1];
      await t.test(`up killed after ${making} s, destroy after ${taking} s`, async () => {
        await killedAfter("up", making);
        await kubexm(["up"]);
        assert.equal((await kubectl("get nodes --no-headers")).match(/ Ready /g)?.length, 2);
        await kubexm(["up", "--refresh", "--expect-no-changes"]);
        await killedAfter("destroy", taking);
        await kubexm(["destroy"]);
        for (const name of ["m1", "w1"]) assert.equal(await differences(name), "", name);
      });
    }
  });
});
