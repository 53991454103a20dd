import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import { spreadDns } from "../../resources/kubernetes/dns";
import { controlPlaneTaint } from "../../resources/kubernetes/kubeadm-config";
import { fakeHost, type FakeHost } from "../harness/fake-host";
import { context, converge, differing, raw, work } from "../harness/step-cases";

/** Pods and nodes as the step asks for them are lines of files; a pod that is deleted comes again on the node named in a third. */
const kubectl = `at="$ROOT/run"
case "$*" in
*"get pods "*) cat "$at/pods" ;;
*"get nodes "*) cat "$at/nodes" ;;
*"delete pod "*)
  for word; do case $word in coredns-*) pod=$word ;; esac; done
  sed "s#.* $pod\\$#$(cat "$at/next") again-$pod#" "$at/pods" >"$at/new" && mv "$at/new" "$at/pods" ;;
esac`;

const [master] = controlPlaneTaint.split(":");
const AT_FIRST = ["m1 coredns-a", "m1 coredns-b"];
const MOVED = ["m1 coredns-a", "w1 again-coredns-b"];

interface Row {
  name: string;
  pods?: string[];
  nodes: string[];
  next?: string;
  after: string[];
}

const rows: Row[] = [
  { name: "both on the first master: one moves", nodes: [`m1 ${master ?? ""}`, "w1"], after: MOVED },
  { name: "they stand apart: nothing is done", pods: MOVED, nodes: ["m1", "w1"], after: MOVED },
  {
    name: "the other node is cordoned, or not ready",
    nodes: ["m1", "w1 node.kubernetes.io/not-ready"],
    after: AT_FIRST,
  },
  { name: "the other node is kept for others", nodes: ["m1", "w1 dedicated"], after: AT_FIRST },
  { name: "only one replica", pods: ["m1 coredns-a"], nodes: ["m1", "w1"], after: ["m1 coredns-a"] },
  { name: "another DNS, whose pods are none of these", pods: [], nodes: ["m1", "w1"], after: [] },
];

const lines = (list: readonly string[]) => list.map((line) => `${line}\n`).join("");
const wanted = work("dns", [spreadDns]);
const put = ({ remote }: FakeHost, path: string, text: string) => remote.run(raw(`printf '%s' '${text}' >${path}`));

async function on(
  { pods = AT_FIRST, nodes, next = "w1" }: Omit<Row, "name" | "after">,
  use: (host: FakeHost) => Promise<void>,
) {
  const files = {
    "etc/kubernetes/admin.conf": "x",
    "run/pods": lines(pods),
    "run/nodes": lines(nodes),
    "run/next": next,
  };
  const host = fakeHost(files, { kubectl });
  try {
    await use(host);
  } finally {
    host.end();
  }
}

describe("CoreDNS on more than one node", () => {
  for (const { name, after, ...given } of rows)
    test(name, () =>
      on(given, async (host) => {
        const moves = after.some((pod) => pod.includes("again"));
        const seen = given.pods === undefined && moves ? [spreadDns.id] : [];
        assert.deepEqual(await differing(host.remote, wanted), seen);
        assert.deepEqual(await converge(host.remote, wanted), seen);
        assert.equal(host.read("run/pods"), lines(after));
        assert.deepEqual(await converge(host.remote, wanted), []);
      }),
    );
  test("where the scheduler leaves it, it stays, until there is another node", () =>
    on({ nodes: ["m1", "w1"], next: "m1" }, async (host) => {
      await converge(host.remote, wanted);
      assert.equal(host.read("run/pods"), lines(["m1 coredns-a", "m1 again-coredns-b"]));
      assert.deepEqual(await differing(host.remote, wanted), []);
      await put(host, "/run/nodes", lines(["m1", "w1", "w2"]));
      assert.deepEqual(await differing(host.remote, wanted), [spreadDns.id]);
    }));
  test("they meet again: seen, and parted again", () =>
    on({ nodes: ["m1", "w1"] }, async (host) => {
      await converge(host.remote, wanted);
      await put(host, "/run/pods", lines(["w1 coredns-c", "w1 coredns-d"]));
      await put(host, "/run/next", "m1");
      assert.deepEqual(await differing(host.remote, wanted), [spreadDns.id]);
    }));
  test("an API server that does not answer is no reason to take it for well; when the cluster goes, nothing is moved", () =>
    on({ nodes: ["m1", "w1"] }, async (host) => {
      await converge(host.remote, wanted);
      await put(host, "/etc/kubernetes/admin.conf", "");
      assert.deepEqual(await differing(host.remote, wanted), [spreadDns.id]);
      await revert(host.remote, "dns", false, context("dns"));
      assert.equal(host.read("run/pods"), lines(MOVED));
    }));
});
