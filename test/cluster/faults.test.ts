import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { labExec, startHost, stopHost, type LabHost } from "../../lab/hosts";
import {
  KUBECTL,
  addHost,
  dropHost,
  inStages,
  isWhole,
  withCluster,
  type Running,
  type Spec,
  type Stage,
} from "../harness/cluster";

const hostIn = (spec: Spec, name: string) => spec.hosts.find((host) => host.name === name) ?? {};

/** Waits for a moment of a run that is at work. The host itself watches for it, as it may be over in half a second. */
async function during(run: Running, host: LabHost, moment: string, every = 0.05): Promise<void> {
  const watch = labExec(
    host,
    `timeout 900 sh -c 'until { ${moment.replaceAll("'", "'\\''")}; }; do sleep ${every}; done'`,
  );
  // A host that goes with the test takes its watch along.
  watch.catch(() => undefined);
  const ended = run.ended.then((code) => `it ended (${code}) before its moment came:\n${run.printed()}`);
  const early = await Promise.race([watch.then(() => ""), ended]);
  assert.equal(early, "");
}

const runs = (command: string) => `pgrep -f '[${command.slice(0, 1)}]${command.slice(1)}' >/dev/null`;

/** Of a node: it takes no pods, or is gone. */
const leaves = (node: string) =>
  `out=$(${KUBECTL} get node ${node} --no-headers --ignore-not-found) && ! printf '%s' "$out" | grep -v Disabled | grep -q .`;

/** Disks that are too small, as file systems of their own. */
const SMALL = { "/usr/local/bin": "16m", "/var/lib/containerd": "24m" };
const mountAll = Object.entries(SMALL)
  .map(([path, size]) => `mkdir -p ${path} && mount -t tmpfs -o size=${size} tmpfs ${path}`)
  .join(" && ");
const enlarge = (path: keyof typeof SMALL) => `mount -o remount,size=3g ${path}`;

/** What the network plugin of another cluster left, which would be taken before ours. */
const CALICO = "/etc/cni/net.d/10-calico.conflist";
const leaveCalico = `mkdir -p /etc/cni/net.d && echo '{"cniVersion":"0.3.1","name":"theirs","plugins":[{"type":"calico"}]}' >${CALICO}`;

/** What tells a node of some other cluster. */
const FOREIGN = `mkdir -p /etc/kubernetes/pki && echo theirs >/etc/kubernetes/pki/ca.crt && echo theirs >/etc/kubernetes/kubelet.conf`;

/** Both containerds work on one folder (docs/kubernetes.md), and take another free port for their streams at every start. */
const OF_CONTAINERD = /^[-+~] (file \/var\/lib\/containerd\/|port tcp 127\.0\.0\.1:\d+$)/;

const stages: readonly Stage[] = [
  {
    name: "the connection is lost during kubeadm init: the next up goes on",
    act: async (cluster) => {
      const { kubexm, kubectl, start, host } = cluster;
      const run = start(["up"]);
      await during(run, host("m1"), runs("kubeadm init"));
      await sleep(2000);
      await labExec(host("m1"), "pkill -KILL -f '[s]shd: root'");
      assert.equal(await run.ended, 1, run.printed());
      assert.match(run.printed(), /m1 › KubernetesNode .* › membership in the cluster: the connection to .* broke/);
      await kubexm(["up"]);
      const tokens = "-n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o name";
      assert.equal(await kubectl(tokens), "");
      await isWhole(cluster, ["m1", "w1"], ["m1"]);
    },
  },
  {
    name: "a node of another cluster with a full disk: both are told before anything is changed",
    act: async ({ kubexm, edit, host, differences, remember }) => {
      await labExec(host("w2"), `${FOREIGN} && ${leaveCalico} && ${mountAll}`);
      await remember("w2");
      edit((spec) => addHost(spec, host("w2"), "worker"));
      const told = await kubexm(["up"], 1);
      assert.match(told, /w2 +disk +FAIL +.*GiB free on \/var\/lib\/containerd/);
      assert.match(told, /w2 +existing +FAIL +\/etc\/kubernetes\/kubelet\.conf/);
      assert.equal(await differences("w2"), "");
    },
  },
  {
    name: "a full disk while a worker joins: host, component, step and the disk are named; with room the next up goes on",
    act: async ({ kubexm, edit, host }) => {
      edit((spec) => Object.assign(hostIn(spec, "w2"), { ignorePreflight: ["disk", "existing"] }));
      const full = async (step: string, path: keyof typeof SMALL) => {
        const told = await kubexm(["up"], 1);
        assert.match(told, new RegExp(`w2 › ${step}: [^]*${path}[^]*no space left on device`, "i"));
        await labExec(host("w2"), enlarge(path));
      };
      await full("Containerd .* › archive /usr/local", "/usr/local/bin");
      await full("Images .* › images", "/var/lib/containerd");
    },
  },
  {
    name: "a node of another cluster is refused, then dropped: it is left alone",
    act: async (cluster) => {
      const { kubexm, edit, host, differences } = cluster;
      const told = await kubexm(["up"], 1);
      assert.match(told, /this host is or was a node of another cluster: \/etc\/kubernetes\/kubelet\.conf/);
      edit((spec) => dropHost(spec, "w2"));
      await kubexm(["up"]);
      assert.equal(await differences("w2"), "");
      await labExec(
        host("w2"),
        "grep -qx theirs /etc/kubernetes/kubelet.conf && grep -qx theirs /etc/kubernetes/pki/ca.crt",
      );
      await isWhole(cluster, ["m1", "w1"], ["m1"]);
    },
  },
  {
    name: "a node of another cluster is cleaned on request",
    act: async (cluster) => {
      const { kubexm, edit, host } = cluster;
      edit((spec) => {
        addHost(spec, host("w2"), "worker");
        Object.assign(hostIn(spec, "w2"), { ignorePreflight: ["disk"] });
        Object.assign(spec.kubernetes, { leftovers: "clean" });
      });
      const told = await kubexm(["up"]);
      assert.match(told, /what an earlier installation left was removed: \/etc\/kubernetes\/kubelet\.conf/);
      assert.match(told, new RegExp(`${CALICO} of an earlier installation was set aside`));
      assert.equal((await labExec(host("w2"), "ls /etc/cni/net.d")).stdout.trim(), "10-flannel.conflist");
      await isWhole(cluster, ["m1", "w1", "w2"], ["m1"]);
    },
  },
  {
    name: "killed while a node leaves, and the node is wanted again: it is whole again",
    act: async (cluster) => {
      const { kubexm, kubectl, start, edit, host } = cluster;
      edit((spec) => dropHost(spec, "w2"));
      const run = start(["up"]);
      await during(run, host("m1"), leaves("w2"), 0.3);
      assert.ok(await run.kill(), run.printed());
      edit((spec) => addHost(spec, host("w2"), "worker"));
      await kubexm(["up"]);
      await isWhole(cluster, ["m1", "w1", "w2"], ["m1"]);
      await kubectl("get node w2 -o 'jsonpath={.spec.podCIDR}' | grep -q .");
    },
  },
  {
    name: "killed while a node leaves: the next up ends it, and the host is as it was",
    act: async (cluster) => {
      const { kubexm, start, edit, host, differences } = cluster;
      edit((spec) => dropHost(spec, "w2"));
      const run = start(["up"]);
      await during(run, host("w2"), runs("kubeadm reset"));
      assert.ok(await run.kill(), run.printed());
      await kubexm(["up"]);
      await isWhole(cluster, ["m1", "w1"], ["m1"]);
      // Of the other cluster nothing but its empty folders is left, and what was set aside.
      await labExec(host("w2"), `cd / && rmdir /etc/kubernetes/pki && ${FOREIGN}`);
      assert.equal(await differences("w2"), "");
      await labExec(host("w2"), `rm -r /etc/kubernetes ${CALICO} && umount ${Object.keys(SMALL).join(" ")}`);
    },
  },
  {
    name: "a containerd of the distribution is refused by name; it is replaced on request, and a master reboots meanwhile",
    act: async (cluster) => {
      const { kubexm, start, edit, host, remember } = cluster;
      await labExec(
        host("w2"),
        "apt-get update -q >/dev/null && apt-get install -qy --no-install-recommends containerd >/dev/null 2>&1",
      );
      await remember("w2");
      edit((spec) => addHost(spec, host("w2"), "worker"));
      assert.match(await kubexm(["up"], 1), /w2 +existing +FAIL +.*\/usr\/bin\/containerd/);
      edit((spec) => {
        const runtime = spec.kubernetes["containerRuntime"] as { containerd: Record<string, unknown> };
        runtime.containerd["existing"] = "replace";
      });
      const run = start(["up"]);
      await during(run, host("w2"), runs("kubeadm join"));
      await stopHost(host("m1"), true);
      await startHost(host("m1"));
      console.log(`a master rebooted during the join of a worker: up ended with ${await run.ended}`);
      await kubexm(["up"]);
      await isWhole(cluster, ["m1", "w1", "w2"], ["m1"]);
    },
  },
  {
    name: "destroy gives the hosts back as they were, and so the one whose containerd was replaced",
    act: async ({ kubexm, differences }) => {
      await kubexm(["destroy"]);
      for (const name of ["m1", "w1"]) assert.equal(await differences(name), "", name);
      const other = (await differences("w2")).split("\n").filter((line) => line !== "" && !OF_CONTAINERD.test(line));
      assert.deepEqual(other, []);
    },
  },
];

test("faults while a cluster comes, grows and shrinks", async (t) => {
  await withCluster({ masters: ["m1"], workers: ["w1"], spare: ["w2"] }, (cluster) => inStages(t, cluster, stages));
});
