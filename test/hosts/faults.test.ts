import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anyLabName, labDown, labExec, labUp, type Lab, type LabHost } from "../../lab/hosts";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import { definitionOf } from "../../provider/definition";
import { create, type Inputs } from "../../provider/lifecycle";
import { closeAll, connect } from "../../provider/ssh";
import { cuttingProxy, type CuttingProxy, type Fault } from "../harness/cutting-proxy";
import { boxFiles, given, place } from "../harness/fault-box";
import { changedSince, converges, onHosts, reverts, tally, tell } from "../harness/fault-run";
import { elsewhere, here, type Call } from "../harness/provider-process";
import { quickState, type QuickState } from "../harness/quick-state";
import { seeded } from "../harness/seeded";

const NAME = anyLabName();
const KILLS = 30;
const scratch = mkdtempSync(join(tmpdir(), "kubexm-faults-"));
const files = boxFiles(scratch);

/** A lab host with a proxy before its sshd, and what it was like. */
interface Station {
  host: LabHost;
  proxy: CuttingProxy;
  whole: Snapshot;
  quick: QuickState;
}

describe("connections cut and processes killed", () => {
  let lab: Lab;
  const stations = new Map<string, Station>();
  const at = (host: LabHost): Station => {
    const found = stations.get(host.name);
    assert.ok(found);
    return found;
  };
  before(async () => {
    lab = await labUp({ name: NAME, hosts: 2, keep: false });
    await Promise.all(
      lab.hosts.map(async (host) => {
        await labExec(host, given);
        const proxy = await cuttingProxy(host.address, host.port);
        stations.set(host.name, { host, proxy, whole: await snapshot(host), quick: await quickState(host) });
      }),
    );
  });
  after(async () => {
    await closeAll();
    await Promise.all([...stations.values()].map(({ proxy }) => proxy.close()));
    await labDown(NAME);
    rmSync(scratch, { recursive: true, force: true });
  });

  const inputs = (host: LabHost, version = "1"): Inputs => ({ version, ...files, ...place(lab, host) });
  /** The same over the proxy, whose key is not in known_hosts. */
  const proxied = (host: LabHost): Inputs => {
    const all = inputs(host);
    const own = { address: "127.0.0.1", port: at(host).proxy.port, hostKeyChecking: "accept-new" };
    return {
      ...all,
      host: { ...(all["host"] as object), ...own, knownHostsPath: join(scratch, `known-${host.name}`) },
    };
  };
  /** Nothing stays anywhere, not only where the quick look looks. */
  const asBefore = async () => {
    for (const { host, whole } of stations.values()) assert.equal(await changedSince(whole, host), "");
  };

  /** Bytes from the host at which each step began, and all bytes both ways, of an apply that nothing disturbs. */
  async function milestones({ host, proxy }: Station) {
    const wanted = proxied(host);
    const measured = async () => {
      const begins: number[] = [];
      const tell = () => void begins.push(proxy.counted().fromHost);
      await proxy.set(undefined);
      await create(
        definitionOf("FaultBox"),
        { connect, tell, forgotten: [], ending: false, renewed: new Set<string>(), controller: "measure" },
        wanted,
      );
      const all = proxy.counted();
      await here({ verb: "delete", props: wanted });
      return { begins, all };
    };
    // The first one also asks for facts, which later ones know.
    await measured();
    return measured();
  }

  test("the connection cut at every step, and on the way there, both ways", async () => {
    const [first] = stations.values();
    assert.ok(first);
    const { begins, all } = await milestones(first);
    assert.ok(begins.length >= 15, `${begins.length} steps began`);
    const evenly = (total: number, count: number) =>
      Array.from({ length: count }, (_, i) => Math.floor((total * (i + 0.5)) / count));
    const cut = (way: Fault["way"], points: readonly number[]) =>
      [...new Set(points)].map((after): Fault => ({ kind: "cut", way, after }));
    const cuts = [
      ...cut("fromHost", [...evenly(begins[0] ?? 0, 4), ...begins, all.fromHost - 40]),
      ...cut("toHost", evenly(all.toHost, 10)),
    ];
    const counts = tally();
    await onHosts(lab.hosts, cuts, async (host, fault) => {
      const { proxy, quick } = at(host);
      await proxy.set(fault);
      counts.tried++;
      const wanted = proxied(host);
      const { error } = await here({ verb: "create", inputs: wanted });
      if (proxy.struck() > 0) counts.struck++;
      if (error !== undefined) assert.match(error, /cannot be reached|broke|connection/, error);
      await proxy.set(undefined);
      try {
        await converges(host, wanted);
        counts.converged++;
        await reverts(host, quick, wanted);
        counts.reverted++;
      } catch (again) {
        throw new Error(`${JSON.stringify(fault)}: ${String(again)}`, { cause: again });
      }
    });
    tell("connection cut", counts);
    assert.ok(counts.struck >= cuts.length - 4, `only ${counts.struck} of ${cuts.length} cuts struck`);
    await asBefore();
  });

  test(`the provider killed at ${KILLS} random moments of create, update and delete`, async () => {
    const random = seeded("kills");
    const [first] = lab.hosts;
    assert.ok(first);
    const since = Date.now();
    await converges(first, inputs(first));
    const span = Date.now() - since;
    await reverts(first, at(first).quick, inputs(first));
    const plan = Array.from({ length: KILLS }, (_, i) => ({
      verb: (["create", "update", "delete"] as const)[i % 3] ?? "create",
      moment: random.below(span),
    }));
    const counts = tally();
    await onHosts(lab.hosts, plan, async (host, { verb, moment }) => {
      const { quick } = at(host);
      const [old, next] = [inputs(host, "1"), inputs(host, "2")];
      const olds = verb === "create" ? undefined : await converges(host, old);
      const call: Call = olds
        ? verb === "update"
          ? { verb, olds, news: next }
          : { verb: "delete", props: olds }
        : { verb: "create", inputs: old };
      const { child, answer } = await elsewhere(call);
      await sleep(moment);
      counts.tried++;
      if (child.kill("SIGKILL")) counts.struck++;
      await answer;
      const where = `${verb} killed after ${moment} ms, seed ${random.seed}`;
      try {
        // What was being deleted may be wanted again at once, or deleted on.
        if (verb === "update") await converges(host, next, olds);
        else if (verb === "create" || moment % 2 === 0) await converges(host, old);
        counts.converged++;
        await reverts(host, quick, old);
        counts.reverted++;
      } catch (error) {
        throw new Error(`${where}: ${String(error)}`, { cause: error });
      }
    });
    tell("provider killed", counts);
    assert.ok(counts.struck > KILLS / 2, `only ${counts.struck} were still at work`);
    await asBefore();
  });
});
