import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apply, driftOf, look, revert } from "../../provider/engine";
import { planText } from "../../provider/plan";
import { keyOf } from "../../provider/step";
import { controlPlaneTaint } from "../../resources/kubernetes/kubeadm-config";
import { nodeSettings } from "../../resources/kubernetes/node-settings";
import { taintsOf } from "../../resources/modules/kubernetes";
import { fakeHost, type FakeHost } from "../harness/fake-host";
import { context, converge, differing, raw, work } from "../harness/step-cases";

/** Keeps the taints of the one node there is as lines of a file. While another file is there, the node is not, once. */
const kubectl = `at="$ROOT/run/taints"
case "$*" in *"get node m1 "*) [ ! -e "$ROOT/run/late" ] || { rm "$ROOT/run/late"; echo "nodes m1 not found" >&2; exit 1; } ;; esac
case "$*" in
*"get node m1 -o name") echo node/m1 ;;
*"get node m1 -o go-template"*) cat "$at" ;;
*"taint node m1 --overwrite "*) for word; do case $word in *:No*) grep -Fxq -e "$word" "$at" || echo "$word" >>"$at" ;; esac; done ;;
*"taint node m1 "*)
  for word; do :; done
  grep -Fxq -e "\${word%-}" "$at" || { echo "taint not found" >&2; exit 1; }
  grep -Fxv -e "\${word%-}" "$at" >"$at.new"
  mv "$at.new" "$at" ;;
esac`;

const THEIRS = "example.com/maintenance:NoExecute";

const rows = (words: readonly string[]) => words.map((word) => `${word}\n`).join("");

async function on(taints: readonly string[], use: (host: FakeHost) => Promise<void>, more = {}) {
  const files = { "etc/kubernetes/admin.conf": "x", "run/taints": rows(taints), ...more };
  const host = fakeHost(files, { kubectl });
  try {
    await use(host);
  } finally {
    host.end();
  }
}

const [tainted, works] = [
  taintsOf({ role: "master", works: false, about: { taints: [] } }),
  taintsOf({ role: "master", works: true, about: { taints: [] } }),
];
const wanted = ({ taints, without = [] }: ReturnType<typeof taintsOf>) =>
  work("settings", [nodeSettings("m1", "taint", taints, without)]);
const now = (host: FakeHost) => host.read("run/taints").split("\n").filter(Boolean).sort();

describe("the taint of a control plane follows its groups while it runs", () => {
  test("what kubeadm set is what is wanted", () =>
    on([controlPlaneTaint], async ({ remote }) => {
      assert.deepEqual(await converge(remote, wanted(tainted)), []);
    }));
  test("a master that becomes a worker, too, loses the one that kubeadm set; what others set stays", () =>
    on([controlPlaneTaint, THEIRS], async (host) => {
      await converge(host.remote, wanted(tainted));
      await converge(host.remote, wanted(works));
      assert.deepEqual(now(host), [THEIRS]);
      assert.deepEqual(await converge(host.remote, wanted(works)), []);
    }));
  test("a master that is no worker any more gets it, and by hand it does not go unseen", () =>
    on([THEIRS], async (host) => {
      await converge(host.remote, wanted(works));
      await converge(host.remote, wanted(tainted));
      assert.deepEqual(now(host), [THEIRS, controlPlaneTaint]);
      await converge(host.remote, wanted(works));
      assert.deepEqual(now(host), [THEIRS]);
      assert.deepEqual(await differing(host.remote, wanted(tainted)), ["taints of node m1"]);
    }));
  test("a node that registers only now is waited for", () =>
    on([], async (host) => {
      const looked = await look(host.remote, [wanted(tainted)]);
      await host.remote.run(raw(": >/run/late"), { title: "it is late" });
      for (const seen of looked) await apply(host.remote, wanted(tainted), seen, context("settings"));
      assert.deepEqual(now(host), [controlPlaneTaint]);
      assert.ok(!host.has("run/late"));
    }));
  test("what another master set is on record here too, so that it goes when it is no longer wanted", () => {
    const dedicated = "example.com/db:NoSchedule";
    const settings = (...taints: string[]) => work("settings", [nodeSettings("m1", "taint", taints)]);
    return on([dedicated, THEIRS], async (host) => {
      await converge(host.remote, settings(dedicated));
      assert.deepEqual(now(host), [dedicated, THEIRS]);
      assert.deepEqual(await converge(host.remote, settings(dedicated)), []);
      await converge(host.remote, settings());
      assert.deepEqual(now(host), [THEIRS]);
    });
  });
  test("its own are taken back with it", () =>
    on([THEIRS], async (host) => {
      await converge(host.remote, wanted(tainted));
      await revert(host.remote, "settings", false, context("settings"));
      assert.deepEqual(now(host), [THEIRS]);
    }));
});

describe("what differs is told with what is there", () => {
  const [dedicated, other] = ["dedicated=db:NoSchedule", "dedicated=web:NoSchedule"];
  for (const { kind, wanted, had = wanted, unwanted = [], now, found } of [
    { kind: "label", wanted: ["disk=ssd", "a=1"], now: ["a=1", "b=2", "disk=hdd"], found: "a=1 disk=hdd" },
    { kind: "label", wanted: ["disk=ssd"], now: ["diskless=yes"], found: "none" },
    { kind: "label", wanted: [], had: ["disk=ssd"], now: ["b=2", "disk=ssd"], found: "disk=ssd" },
    { kind: "label", wanted: ["disk=ssd"], had: ["disk=hdd"], now: ["disk=hdd"], found: "disk=hdd" },
    { kind: "label", wanted: ["disk=ssd", "empty="], now: ["b=2", "disk=ssd", "empty="], found: undefined },
    { kind: "label", wanted: [], now: [], found: undefined },
    { kind: "taint", wanted: [dedicated], now: [other, "dedicated=db:NoExecute"], found: other },
    { kind: "taint", wanted: [dedicated], now: ["dedicated:NoSchedule"], found: "dedicated:NoSchedule" },
    {
      kind: "taint",
      wanted: [dedicated],
      unwanted: [THEIRS],
      now: [dedicated, THEIRS],
      found: `${dedicated} ${THEIRS}`,
    },
    { kind: "taint", wanted: [dedicated], now: [dedicated, THEIRS], found: undefined },
  ] as {
    kind: "label" | "taint";
    wanted: string[];
    had?: string[];
    unwanted?: string[];
    now: string[];
    found?: string;
  }[])
    test(`${kind}s ${wanted.join(" ")}, earlier ${had.join(" ")}, never ${unwanted.join(" ")}, where there are ${now.join(" ")}`, () => {
      const step = nodeSettings("m1", kind, wanted, unwanted);
      const ours = { [`var/lib/kubexm/ledger/${keyOf(step.id)}/ours`]: rows(had.length === 0 ? [""] : had) };
      return on(
        now,
        async ({ remote }) => {
          const [seen] = await look(remote, [work("settings", [step])]);
          assert.ok(seen);
          assert.deepEqual(
            driftOf(seen).map((row) => row.found),
            found === undefined ? [] : [`${kind}s=${found}`],
          );
        },
        ours,
      );
    });
  test("a plan has the old and the new value", () => {
    const [before, after] = ["hdd", "ssd"].map((disk) => [nodeSettings("w1", "label", ["a=1", `disk=${disk}`])]);
    assert.deepEqual(planText(before ?? [], after ?? [], []), [
      "~ labels of node w1 labels=a=1 disk=ssd",
      "     a=1",
      "    -disk=hdd",
      "    +disk=ssd",
    ]);
  });
});

test("workers have the taints that are written; the one of a control plane can be written, too", () => {
  const of = (role: "master" | "worker", works: boolean, ...taints: string[]) =>
    taintsOf({ role, works, about: { taints } });
  assert.deepEqual(of("worker", true, "a=b:NoSchedule"), { taints: ["a=b:NoSchedule"] });
  assert.deepEqual(of("master", false, "a=b:NoSchedule"), { taints: [controlPlaneTaint, "a=b:NoSchedule"] });
  for (const written of [controlPlaneTaint, controlPlaneTaint.replace(":", "=mine:")])
    assert.deepEqual(of("master", true, written), { taints: [written] });
});
