import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GIVEN, OWN, docker } from "../../lab/docker";
import { labExec, type LabHost } from "../../lab/hosts";
import { run } from "../../toolchain/process";
import { addHost, dropHost, inStages, until, withCluster, type Stage } from "../harness/cluster";
import { startProbe, tellProbe } from "../harness/probe";

/** Ids of the running containers with these names. */
async function containersOf(hosts: readonly LabHost[], names: string): Promise<string> {
  const found = hosts.map((host) => labExec(host, `crictl ps -q --name '^(${names})$' | sort`));
  return (await Promise.all(found)).map(({ stdout }) => stdout).join("\n");
}

/** Not what the lab's clusters have. */
const OTHER_CONTAINERD = "2.2.7";

/** Long enough for pods that may go. */
const DRAIN_SECONDS = 20;

const stages: readonly Stage[] = [
  {
    name: "up makes a cluster whose nodes are ready, and writes a kubeconfig that only its owner reads",
    act: async ({ kubexm, kubectl, lab, home, edit, host }) => {
      edit((spec) => {
        Object.assign(spec, { etcd: { ...(spec["etcd"] as object), dataDir: "/srv/etcd" } });
        // What a host that goes is told, was settled when it came.
        Object.assign(spec.kubernetes, { drain: { timeout: DRAIN_SECONDS } });
      });
      await kubexm(["up"]);
      await labExec(host("m1"), "test -d /srv/etcd/member && ! test -e /var/lib/etcd");
      assert.equal(await kubectl("get nodes --no-headers | sed 's/ .*//' | tr '\\n' ' '"), "m1 w1 ");
      assert.doesNotMatch(await kubectl("get nodes --no-headers"), /NotReady/);
      const path = join(home, "kubeconfig");
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.match(readFileSync(path, "utf8"), new RegExp(`server: https://${lab.hosts[0]?.address ?? ""}:6443`));
    },
  },
  {
    name: "no token stays in the cluster, and nothing secret in logs and state",
    act: async ({ kubectl, host, home }) => {
      assert.equal(
        await kubectl("get secrets -n kube-system --field-selector type=bootstrap.kubernetes.io/token -o name"),
        "",
      );
      const key = (
        await labExec(host("m1"), "sed -n 's/.*client-key-data: //p' /etc/kubernetes/admin.conf")
      ).stdout.trim();
      const ca = (await labExec(host("m1"), "sed -n 2p /etc/kubernetes/pki/ca.key")).stdout.trim();
      const places = ["state", "logs"].map((name) => join(home, name));
      const found = await run("grep", ["-rlF", "-e", key.slice(0, 60), "-e", ca, ...places], { okCodes: [0, 1] });
      assert.equal(found.stdout, "");
    },
  },
  {
    name: "a second up changes nothing, with and without a look",
    act: async ({ kubexm }) => {
      await kubexm(["up", "--expect-no-changes"]);
      await kubexm(["up", "--refresh", "--expect-no-changes"]);
    },
  },
  {
    name: "preflight does not take kubexm's own cluster for somebody else's",
    act: async ({ kubexm }) => {
      assert.match(await kubexm(["preflight"]), /2 hosts: 0 failures/);
    },
  },
  {
    name: "options of API server and kubelet, a label and a taint reach the running cluster, and its pods serve on",
    act: async (cluster) => {
      const { kubexm, kubectl, edit, host } = cluster;
      // As on a host that was rebooted twice: what ended before is no sign of a control plane that does not come up.
      for (const ended of [1, 2]) {
        await labExec(host("m1"), "crictl stop --timeout 0 $(crictl ps --name '^kube-apiserver$' -q) >/dev/null");
        await until(async () => {
          await kubectl("get --raw /readyz");
          const about =
            "get pod kube-apiserver-m1 -n kube-system -o 'jsonpath={.status.containerStatuses[0].restartCount}'";
          assert.equal(await kubectl(about), String(ended));
        });
      }
      const probe = await startProbe(cluster, "m1", "w1");
      const running = () => containersOf([host("m1"), host("w1")], "main|coredns|kube-flannel|kube-proxy");
      const before = await running();
      edit((spec) => {
        Object.assign(spec.kubernetes, { apiserverArgs: ["--max-requests-inflight=321"], maxPods: 77 });
        Object.assign(spec.hosts[1] ?? {}, { labels: { disk: "ssd" }, taints: ["dedicated=db:PreferNoSchedule"] });
      });
      await kubexm(["up"]);
      const { stdout } = await labExec(host("m1"), "tr '\\0' ' ' </proc/$(pidof kube-apiserver)/cmdline");
      assert.match(stdout, /--max-requests-inflight=321/);
      const about = "{.metadata.labels.disk} {.spec.taints[0].key}";
      assert.equal(await kubectl(`get node w1 -o 'jsonpath=${about}'`), "ssd dedicated");
      // kubelet tells its capacity some seconds after its start.
      await kubectl("wait node/m1 node/w1 --for 'jsonpath={.status.capacity.pods}=77' --timeout 60s");
      const { asked, failed } = await probe.count();
      console.log(tellProbe("options of API server and kubelet changed", { asked, failed }));
      assert.ok(asked > 20, `only ${asked} requests`);
      // A busy machine loses one now and then; an API server that is away would cost a third of them.
      assert.ok(failed.length * 20 < asked, `of ${asked} requests:\n${failed.join("\n")}`);
      assert.equal(await running(), before);
      await kubexm(["up", "--refresh", "--expect-no-changes"]);
    },
  },
  {
    name: "a label taken out of the file goes, and what others labelled stays",
    act: async ({ kubexm, kubectl, edit }) => {
      await kubectl("label node w1 mine=1");
      edit((spec) => Object.assign(spec.hosts[1] ?? {}, { labels: { rack: "a" }, taints: [] }));
      await kubexm(["up"]);
      assert.equal(
        await kubectl(
          "get node w1 -o 'jsonpath={.metadata.labels.disk}{.metadata.labels.rack}{.metadata.labels.mine}{.spec.taints}'",
        ),
        "a1",
      );
    },
  },
  {
    name: "a master that becomes a worker, too, takes pods, and none when it is a master only again",
    act: async ({ kubexm, kubectl, edit }) => {
      const taints = () => kubectl("get node m1 -o 'jsonpath={.spec.taints[*].key}'");
      assert.equal(await taints(), "node-role.kubernetes.io/control-plane");
      edit((spec) => spec.roleGroups.worker.push("m1"));
      await kubexm(["up"]);
      assert.equal(await taints(), "");
      edit((spec) => (spec.roleGroups.worker = spec.roleGroups.worker.filter((name) => name !== "m1")));
      await kubexm(["up"]);
      assert.equal(await taints(), "node-role.kubernetes.io/control-plane");
    },
  },
  {
    name: "registries change without a restart; kube-proxy and containerd's version change, and containers run on",
    act: async ({ kubexm, kubectl, edit, host }) => {
      const seen = async (command: string) => (await labExec(host("w1"), command)).stdout;
      const containerd = "systemctl show containerd -p MainPID --value";
      const containers = () => containersOf([host("w1")], "coredns|kube-flannel");
      const before = await seen(containerd);
      edit((spec) => {
        const { images } = spec["mirrors"] as { images: Record<string, unknown>[] };
        images.push({ ...images[0], registry: "quay.io" });
        Object.assign(spec.kubernetes["kubeProxyConfiguration"] as object, { metricsBindAddress: "127.0.0.1:10289" });
      });
      await kubexm(["up"]);
      assert.equal(await seen(containerd), before);
      assert.match(await seen("cat /etc/containerd/certs.d/quay.io/hosts.toml"), /https:/);
      assert.match(await kubectl("-n kube-system get configmap kube-proxy -o yaml"), /127\.0\.0\.1:10289/);
      await kubectl("-n kube-system rollout status daemonset/kube-proxy --timeout=60s");

      const running = await containers();
      edit((spec) => {
        const { containerd } = spec.kubernetes["containerRuntime"] as { containerd: object };
        Object.assign(containerd, { version: OTHER_CONTAINERD });
      });
      await kubexm(["up"]);
      assert.match(await seen("ctr version"), new RegExp(`Server:\\n +Version: +v${OTHER_CONTAINERD}`));
      assert.equal(await containers(), running);
      await kubexm(["up", "--refresh", "--expect-no-changes"]);
    },
  },
  {
    name: "drift is seen and healed: a manifest, a unit, a label, an object, an image",
    act: async ({ kubexm, kubectl, host }) => {
      await labExec(
        host("w1"),
        "systemctl disable -q kubelet && crictl rmi registry.k8s.io/coredns/coredns:v1.13.1 >/dev/null 2>&1",
      );
      await labExec(host("w1"), "echo 'maxPods: 9' >/etc/kubernetes/kubelet.conf.d/50-kubexm.conf");
      await kubectl("label node w1 rack-");
      await kubectl("-n kube-flannel set image ds/kube-flannel-ds kube-flannel=ghcr.io/flannel-io/flannel:v0.0.1");
      await labExec(
        host("m1"),
        "sed -i 's/--max-requests-inflight=321/--max-requests-inflight=5/' /etc/kubernetes/manifests/kube-apiserver.yaml",
      );
      await until(async () => {
        const { stdout } = await labExec(host("m1"), "tr '\\0' ' ' </proc/$(pidof kube-apiserver)/cmdline");
        assert.match(stdout, /--max-requests-inflight=5 /);
        await kubectl("get --raw /readyz");
      });
      const told = await kubexm(["drift"], 2);
      for (const thing of [
        "settings of the control plane",
        "unit kubelet.service",
        "labels of node w1",
        "objects flannel",
        "images",
        "50-kubexm.conf",
      ])
        assert.match(told, new RegExp(thing));
      await kubexm(["up", "--refresh"]);
      await kubexm(["up", "--refresh", "--expect-no-changes"]);
      assert.match(await kubectl("get ds -n kube-flannel -o 'jsonpath={..image}'"), /flannel:v0\.28\.9/);
    },
  },
  {
    name: "what a running cluster cannot change is refused in preview, with the reason",
    act: async ({ kubexm, edit }) => {
      const refused = async (change: Record<string, unknown>, reason: RegExp, put: Record<string, unknown>) => {
        edit((spec) => Object.assign(spec, change));
        assert.match(await kubexm(["preview"], 1), reason);
        edit((spec) => {
          for (const key of Object.keys(change)) Reflect.deleteProperty(spec, key);
          Object.assign(spec, put);
        });
      };
      await refused({ network: { kubePodsCIDR: "10.244.0.0/16" } }, /cannot be changed any more/, {});
      await refused({ network: { kubeServiceCIDR: "10.97.0.0/16" } }, /cannot be changed any more/, {});
      await refused(
        { network: { plugin: "calico" } },
        /:\d+:\d+ spec\.network\.plugin: .*this version of kubexm makes flannel/,
        {},
      );
      const refusedOfKubernetes = async (change: Record<string, unknown>, reason: RegExp) => {
        let before: Record<string, unknown> = {};
        edit(({ kubernetes }) => {
          before = { ...kubernetes };
          Object.assign(kubernetes, change);
        });
        assert.match(await kubexm(["preview"], 1), reason);
        edit((spec) => Object.assign(spec, { kubernetes: before }));
      };
      await refusedOfKubernetes({ version: "v1.36.3" }, /does not upgrade running clusters yet/);
      await refusedOfKubernetes({ clusterName: "k8s.example" }, /networking cannot be changed any more/);
      await refusedOfKubernetes({ nodeCidrMaskSize: 25 }, /nodeCidrMaskSize cannot be changed any more: nodes keep/);
      await kubexm(["up", "--expect-no-changes"]);
    },
  },
  {
    name: "an API server that cannot start: its last words within a minute, and the next up mends it",
    act: async ({ kubexm, kubectl, edit }) => {
      const argue = (...more: string[]) =>
        edit((spec) => Object.assign(spec.kubernetes, { apiserverArgs: ["--max-requests-inflight=321", ...more] }));
      argue("--no-such-option=1");
      const told = await kubexm(["up"], 1);
      assert.match(told, /kube-apiserver does not come up; its last words:[^]*unknown flag: --no-such-option/);
      assert.doesNotMatch(told, /not ready after/);
      argue();
      await kubexm(["up"]);
      assert.match(await kubectl("get nodes --no-headers"), /^m1 +Ready /m);
    },
  },
  {
    name: "a worker more: only that host is made, the others get its name; what is in an archive is not pulled",
    act: async ({ kubexm, kubectl, edit, host, cwd, lab }) => {
      const archive = join(cwd, "images.tar");
      const images = (await labExec(host("m1"), "ctr -n k8s.io images ls -q | grep '/coredns:\\|/pause:'")).stdout;
      await labExec(
        host("m1"),
        `ctr -n k8s.io images export --local /root/images.tar ${images.trim().replaceAll("\n", " ")}`,
      );
      await docker(lab.hosts[0]?.ownDocker ? OWN : GIVEN, ["cp", `${host("m1").container}:/root/images.tar`, archive]);
      await labExec(host("m1"), "rm /root/images.tar");
      edit((spec) => Object.assign(spec["mirrors"] as object, { imageArchives: [archive] }));
      await kubexm(["up"]);
      edit((spec) => addHost(spec, host("w2"), "worker"));
      const told = (await kubexm(["up"])).split("\n");
      const made = told.filter((line) => /^\S+ +\+ /.test(line) && !/^w2 |NodeSettings/.test(line));
      assert.deepEqual(made, []);
      // Looking at all together is no change of a host; time is served to those whose addresses are known.
      const changed = told.filter((line) => /^\S+ +[~±] /.test(line) && !/System|ClusterPreflight|Chrony/.test(line));
      assert.deepEqual(changed, []);
      for (const name of ["m1", "w1"])
        await labExec(host(name), `grep -w '${host("w2").address}' /etc/hosts | grep -qw w2`);
      assert.doesNotMatch(await kubectl("get nodes --no-headers"), /NotReady/);
      assert.match(await kubectl("get nodes --no-headers"), /^w2 /m);
      const pulled = (await labExec(host("w2"), "journalctl -u containerd -o cat | grep 'PullImage \\\\\"'")).stdout;
      assert.match(pulled, /kube-proxy/);
      assert.doesNotMatch(pulled, /coredns|pause/);
    },
  },
  {
    name: "a node that somebody deleted by kubectl: drift sees it, and --replace joins it anew",
    act: async ({ kubexm, kubectl }) => {
      await kubectl("delete node w2");
      assert.match(await kubexm(["drift"], 2), /labels of node w2/);
      await kubexm(["up", "--refresh", "--replace", "**::*-w2-node"]);
      // That its pod network works is seen below, where pods start on it.
      assert.match(await kubectl("get nodes --no-headers"), /^w2 +Ready /m);
    },
  },
  {
    name: "a worker less: not while a PodDisruptionBudget holds its pods; then they move first, and it is as it was before",
    act: async ({ kubexm, kubectl, edit, differences }) => {
      await kubectl("create deployment web --image=registry.k8s.io/pause:3.10.1 --replicas=4");
      await kubectl("rollout status deployment/web --timeout=60s");
      assert.match(await kubectl("get pods -l app=web -o 'jsonpath={.items[*].spec.nodeName}'"), /\bw2\b/);
      await kubectl("create poddisruptionbudget web --selector=app=web --min-available=4");
      edit((spec) => dropHost(spec, "w2"));
      const told = await kubexm(["up"], 1);
      assert.match(told, new RegExp(`w2 was not drained within ${DRAIN_SECONDS} s .*PodDisruptionBudget`));
      assert.match(told, /w2 was not drained within 20 s[^]*PodDisruptionBudget/);
      assert.match(await kubectl("get nodes --no-headers"), /^w2 +Ready,SchedulingDisabled /m);
      await kubectl("delete poddisruptionbudget web");
      await kubexm(["up"]);
      assert.doesNotMatch(await kubectl("get nodes --no-headers"), /^w2 /m);
      await kubectl("rollout status deployment/web --timeout=60s");
      assert.equal(await differences("w2"), "");
    },
  },
  {
    name: "destroy gives all hosts back as they were",
    act: async ({ kubexm, differences }) => {
      await kubexm(["destroy"]);
      for (const name of ["m1", "w1", "w2"]) assert.equal(await differences(name), "", name);
    },
  },
];

test("one master, one worker", async (t) => {
  const parts = [`containerd@${OTHER_CONTAINERD}`];
  await withCluster({ masters: ["m1"], workers: ["w1"], spare: ["w2"], parts }, (cluster) =>
    inStages(t, cluster, stages),
  );
});
