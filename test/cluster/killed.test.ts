import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { addHost, dropHost, isWhole, withCluster } from "../harness/cluster";
import { tally, tell } from "../harness/fault-run";
import { seeded } from "../harness/seeded";

/** Rounds of four kills; in CI each costs four minutes, and more of them are for a long look: KUBEXM_TRIES. */
const TRIES = Number(process.env["KUBEXM_TRIES"] ?? 1);

/** What is struck, and how many resources come to their end in it. */
const RESOURCES = { create: 24, join: 12, leave: 12, destroy: 24 } as const;
type Phase = keyof typeof RESOURCES;

/** A moment may be this long after a resource: joining a cluster takes longest. */
const AFTER_MS = 6000;

test("killed with all it started, at any moment of create, join, leave and destroy: the next run finishes it, and nothing stays", async (t) => {
  const random = seeded("killed clusters");
  const counts = { create: tally(), join: tally(), leave: tally(), destroy: tally() };
  await withCluster(
    { masters: ["m1"], workers: ["w1"], spare: ["m2", "w2"], balanced: ["m1", "m2"] },
    async (cluster) => {
      const { kubexm, differences, edit, host } = cluster;
      const strike = async (phase: Phase, what: string, verb: "up" | "destroy") => {
        const [resources, ms] = [random.below(RESOURCES[phase]), random.below(AFTER_MS)];
        const run = cluster.start([verb]);
        const done = () => run.printed().match(/^\S+ +[-+~] .*/gm) ?? [];
        const over = run.ended.then(() => true);
        while (done().length < resources && !(await Promise.race([over, sleep(50).then(() => false)])));
        await Promise.race([sleep(ms), over]);
        const struck = await run.kill();
        const last = done().at(-1) ?? "the beginning";
        console.log(`${what}: ${struck ? "killed" : "had ended"} at ${done().length} resources, ${ms} ms on: ${last}`);
        counts[phase].tried++;
        if (struck) counts[phase].struck++;
      };
      for (let i = 0; i < TRIES; i++) {
        const [newcomer, role] = i % 2 === 0 ? (["w2", "worker"] as const) : (["m2", "master"] as const);
        const [few, many] = [
          ["m1", "w1"],
          ["m1", "w1", newcomer],
        ];
        const masters = role === "master" ? ["m1", "m2"] : ["m1"];
        const join = () => edit((spec) => addHost(spec, host(newcomer), role));
        const leave = () => edit((spec) => dropHost(spec, newcomer));
        const finished = async (phase: Phase, nodes: readonly string[], members: readonly string[]) => {
          await kubexm(["up"]);
          await isWhole(cluster, nodes, members);
          counts[phase].converged++;
        };
        await t.test(`round ${i + 1}, ${newcomer} comes and goes`, async () => {
          await strike("create", "create", "up");
          await finished("create", few, ["m1"]);

          join();
          await strike("join", `${newcomer} joins`, "up");
          await finished("join", many, masters);

          leave();
          await strike("leave", `${newcomer} leaves`, "up");
          // Half of them are wanted again.
          if (random.below(2) === 0) {
            join();
            await finished("leave", many, masters);
            leave();
            await kubexm(["up"]);
          } else await finished("leave", few, ["m1"]);
          assert.equal(await differences(newcomer), "", newcomer);

          await strike("destroy", "destroy", "destroy");
          // Sometimes it is to stay after all.
          if (random.below(3) === 0) await finished("destroy", few, ["m1"]);
          else counts.destroy.converged++;
          await kubexm(["destroy"]);
          for (const name of ["m1", "w1", newcomer]) assert.equal(await differences(name), "", name);
          for (const count of Object.values(counts)) count.reverted++;
        });
        if (counts.destroy.reverted <= i) break;
      }
    },
  );
  for (const [phase, count] of Object.entries(counts)) tell(`killed: ${phase}`, count);
});
