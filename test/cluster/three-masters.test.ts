import assert from "node:assert/strict";
import { test } from "node:test";
import { labExec, stopHost } from "../../lab/hosts";
import { addHost, dropHost, inStages, members, until, withCluster, type Stage } from "../harness/cluster";
import { startProbe, tellProbe, type Probe } from "../harness/probe";

let probe: Probe;

const stages: readonly Stage[] = [
  {
    name: "an API server that cannot start on the very first up: its last words, and no wait for it",
    act: async ({ kubexm, edit }) => {
      edit((spec) => Object.assign(spec.kubernetes, { apiserverArgs: ["--no-such-option=1"] }));
      const told = await kubexm(["up"], 1);
      assert.match(told, /kube-apiserver does not come up; its last words:[^]*unknown flag: --no-such-option/);
      assert.doesNotMatch(told, /not ready after|time limit/);
      edit((spec) => Reflect.deleteProperty(spec.kubernetes, "apiserverArgs"));
    },
  },
  {
    name: "the next up makes three masters, each a member of etcd, that take pods",
    act: async (cluster) => {
      await cluster.kubexm(["up"]);
      assert.equal(await members(cluster, "m1"), "m1 m2 m3");
      assert.equal((await cluster.kubectl("get nodes --no-headers")).match(/ Ready /g)?.length, 3);
      await cluster.kubexm(["up", "--refresh", "--expect-no-changes"]);
    },
  },
  {
    name: "a master that would take the majority with it may not go; with the others well it leaves, and comes again",
    act: async (cluster) => {
      const { kubexm, edit, host, kubectl } = cluster;
      const manifest = "/etc/kubernetes/manifests/etcd.yaml";
      await labExec(host("m1"), `mv ${manifest} /root/; crictl stop $(crictl ps --name '^etcd$' -q) >/dev/null`);
      edit((spec) => dropHost(spec, "m3"));
      assert.match(await kubexm(["up"], 1), /without m3 only 1 of 2 members of etcd would be healthy/);
      assert.equal(await members(cluster, "m2"), "m1 m2 m3");
      assert.match(await kubectl("get nodes --no-headers", "m2"), /^m3 +Ready /m);
      await labExec(host("m1"), `mv /root/etcd.yaml ${manifest}`);
      await until(() => kubectl("get --raw /readyz", "m1"));
      await kubexm(["up"]);
      assert.equal(await members(cluster, "m1"), "m1 m2");
      assert.equal(await cluster.differences("m3"), "");
      edit((spec) => {
        addHost(spec, host("m3"), "master");
        spec.roleGroups.worker.push("m3");
      });
      await kubexm(["up"]);
      assert.equal(await members(cluster, "m1"), "m1 m2 m3");
      assert.equal((await kubectl("get nodes --no-headers")).match(/ Ready /g)?.length, 3);
      const dns = await kubectl("-n kube-system get pods -l k8s-app=kube-dns -o 'jsonpath={.items[*].spec.nodeName}'");
      assert.equal(new Set(dns.split(" ")).size, 2, dns);
      await kubectl("-n kube-system rollout status deployment coredns --timeout=120s");
    },
  },
  {
    name: "a master's host dies: the others serve on",
    act: async (cluster) => {
      probe = await startProbe(cluster, "m2", "m3", "m2");
      await stopHost(cluster.host("m1"), true);
      // Said again after a no, it may be there already: applied, not created.
      const written = "kind: ConfigMap\napiVersion: v1\nmetadata: { name: written-after }\ndata: { a: b }";
      await cluster.kubectl(`apply --server-side -f - <<'EOF'\n${written}\nEOF`, "m2");
      assert.equal(await cluster.kubectl("get configmap written-after -o 'jsonpath={.data.a}'", "m3"), "b");
    },
  },
  {
    name: "without a word about it, a dead host is an error that says what to do",
    act: async ({ kubexm, edit }) => {
      edit((spec) => dropHost(spec, "m1"));
      const told = await kubexm(["up"], 1);
      assert.match(told, /KUBEXM_FORGET=m1/);
    },
  },
  {
    name: "forgotten on request: it leaves etcd and the list of nodes, the first of the others takes over",
    act: async (cluster) => {
      await cluster.kubexm(["up"], 0, { KUBEXM_FORGET: "m1" });
      assert.equal(await members(cluster, "m2"), "m2 m3");
      assert.doesNotMatch(await cluster.kubectl("get nodes --no-headers", "m2"), /^m1 /m);
      await cluster.kubexm(["up", "--refresh", "--expect-no-changes"]);
    },
  },
  {
    name: "of two healthy masters one can go",
    act: async (cluster) => {
      const { failed, asked } = await probe.count();
      console.log(tellProbe("a master died, and was forgotten", { asked, failed }));
      assert.ok(asked > 100, `${asked} requests`);
      assert.ok(failed.length * 10 < asked, `of ${asked} requests of a pod to another node: ${failed.join("\n")}`);
      await cluster.kubectl("delete pod client echo --grace-period=0 --force", "m2");
      cluster.edit((spec) => dropHost(spec, "m3"));
      await cluster.kubexm(["up"]);
      assert.equal(await members(cluster, "m2"), "m2");
      assert.equal(await cluster.differences("m3"), "");
    },
  },
  {
    name: "destroy gives the last one back as it was",
    act: async ({ kubexm, differences }) => {
      await kubexm(["destroy"]);
      assert.equal(await differences("m2"), "");
    },
  },
];

test("three masters behind a load balancer", async (t) => {
  await withCluster({ masters: ["m1", "m2", "m3"], workers: [] }, (cluster) => inStages(t, cluster, stages));
});
