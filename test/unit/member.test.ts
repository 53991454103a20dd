import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import type { RemoteError } from "../../provider/errors";
import { member, type Membership } from "../../resources/kubernetes/member";
import { kubeadm as theirKubeadm } from "../../resources/kubernetes/paths";
import { fakeHost, type FakeHost } from "../harness/fake-host";
import { context, converge, raw, work } from "../harness/step-cases";

const membership: Membership = {
  name: "m1",
  tainted: true,
  ignored: [],
  endpoint: "lb:6443",
  local: { address: "192.0.2.1", port: 6443 },
  first: true,
  masters: [],
  etcdDir: "/run/data/etcd",
  settings: "abc",
  leftovers: "refuse",
};

/** What kubeadm does to files; a file `broken` lets its init fail half-way, as a kill would. */
const kubeadm = `K="$ROOT/etc/kubernetes"
case "$*" in
init*)
  mkdir -p "$K/pki" "$K/manifests" "$ROOT/run/data/etcd/member"
  for file in pki/ca.crt manifests/etcd.yaml kubelet.conf admin.conf; do echo ours >"$K/$file"; done
  [ ! -e "$ROOT/run/broken" ] || { rm "$ROOT/run/broken"; echo 'timed out' >&2; exit 1; } ;;
reset*)
  [ ! -e "$ROOT/run/stuck" ] || { echo 'will not reset' >&2; exit 1; }
  rm -rf "$K/pki" "$K/manifests" "$K/kubelet.conf" "$K/admin.conf" ;;
esac`;

/** This machine's own rules and interfaces are out of reach. */
const tables = ["iptables", "ip6tables", "iptables-legacy", "ip6tables-legacy"].map((name) => `${name}-save`);
const harmless = Object.fromEntries([...tables, "ip", "nft", "crictl"].map((name) => [name, ":"]));

const THEIRS = { "etc/kubernetes/kubelet.conf": "theirs\n", "etc/kubernetes/pki/ca.crt": "theirs\n" };

async function on(files: Readonly<Record<string, string>>, use: (host: FakeHost) => Promise<void>) {
  const host = fakeHost(files, { ...harmless, kubeadm, kubectl: ":" });
  try {
    await use(host);
  } finally {
    host.end();
  }
}

const join = ({ remote }: FakeHost, more: Partial<Membership> = {}) =>
  converge(remote, work("node", [member({ ...membership, ...more })]));
const drop = ({ remote }: FakeHost) => revert(remote, "node", false, context("node"));
const resets = ({ calls }: FakeHost) => calls().filter((call) => call.startsWith("kubeadm reset")).length;

test("a proxy of whoever logs in is not for kubeadm", () => {
  const env = { PATH: process.env["PATH"], https_proxy: "http://proxy", HTTP_PROXY: "http://proxy", KEPT: "yes" };
  const text = theirKubeadm.text.replace("/usr/local/bin/kubeadm", "env");
  const seen = execFileSync("sh", ["-c", text], { env, encoding: "utf8" });
  assert.match(seen, /^KEPT=yes$/m);
  assert.doesNotMatch(seen, /proxy/i);
});

describe("what is taken back of a node", () => {
  test("settings of the kernel that kubelet changed", () =>
    on({ "proc/sys/kernel/panic": "0\n", "proc/sys/vm/overcommit_memory": "2\n" }, async (host) => {
      await join(host);
      await host.remote.run(raw("echo 10 >/proc/sys/kernel/panic; echo 1 >/proc/sys/vm/overcommit_memory"));
      await drop(host);
      assert.equal(host.read("proc/sys/kernel/panic"), "0\n");
      assert.equal(host.read("proc/sys/vm/overcommit_memory"), "2\n");
    }));
  test("nothing of a host that was refused: it is somebody else's node", () =>
    on(THEIRS, async (host) => {
      await assert.rejects(join(host), /node of another cluster: \/etc\/kubernetes\/kubelet\.conf/);
      await drop(host);
      assert.equal(resets(host), 0);
      assert.equal(host.read("etc/kubernetes/kubelet.conf"), "theirs\n");
      assert.equal(host.read("etc/kubernetes/pki/ca.crt"), "theirs\n");
    }));
  test("nothing of a host that had nobody to join", () =>
    on({}, async (host) => {
      await assert.rejects(join(host, { first: false }), /none of the masters has a cluster yet/);
      await drop(host);
      assert.equal(resets(host), 0);
    }));
  test("a node that was only half made", () =>
    on({ "run/broken": "" }, async (host) => {
      await assert.rejects(join(host), /timed out/);
      await drop(host);
      assert.equal(resets(host), 1);
      assert.ok(!host.has("etc/kubernetes/kubelet.conf"));
    }));
  test("a node", () =>
    on({}, async (host) => {
      await join(host);
      await drop(host);
      assert.equal(resets(host), 1);
      assert.ok(!host.has("etc/kubernetes/kubelet.conf"));
    }));
});

describe("what another network plugin left is in the way of ours", () => {
  const calico = { "etc/cni/net.d/10-calico.conflist": "theirs\n", "etc/cni/net.d/calico-kubeconfig": "theirs\n" };
  const cni = ({ has }: FakeHost) => Object.keys(calico).filter(has).length;
  test("where it is to be cleaned it is set aside, and comes back when the node goes", () =>
    on({ ...THEIRS, ...calico }, async (host) => {
      await join(host, { leftovers: "clean" });
      assert.equal(cni(host), 0);
      await host.remote.run(raw("echo ours >/etc/cni/net.d/10-calico.conflist"));
      await drop(host);
      assert.equal(cni(host), 2);
      assert.equal(host.read("etc/cni/net.d/10-calico.conflist"), "theirs\n");
    }));
  test("and aside again where that was cut off, and the node is wanted after all", () =>
    on({ ...THEIRS, ...calico }, async (host) => {
      await join(host, { leftovers: "clean" });
      await host.remote.run(raw("echo theirs >/etc/cni/net.d/calico-kubeconfig; rm /etc/kubernetes/kubelet.conf"));
      await join(host, { leftovers: "clean" });
      assert.equal(cni(host), 0);
      await drop(host);
      assert.equal(cni(host), 2);
    }));
  test("a running plugin alone does not have the host reset", () =>
    on(calico, async (host) => {
      await join(host, { leftovers: "clean" });
      assert.deepEqual([cni(host), resets(host)], [0, 0]);
    }));
  test("it stays where nothing is to be cleaned", () =>
    on(calico, async (host) => {
      await join(host);
      assert.equal(cni(host), 2);
    }));
  test("it comes back even if the node was never begun", () =>
    on({ ...THEIRS, ...calico, "run/stuck": "" }, async (host) => {
      await assert.rejects(join(host, { leftovers: "clean" }), /will not reset/);
      await drop(host);
      assert.equal(cni(host), 2);
    }));
});

describe("the token of a day that kubeadm init makes goes at once", () => {
  const deleted = ({ calls }: FakeHost) => calls().filter((call) => /^kubectl .*delete secrets .*bootstrap/.test(call));
  test("after the first try", () =>
    on({}, async (host) => {
      await join(host);
      assert.equal(deleted(host).length, 1);
    }));
  test("after one that went on with what an earlier one made", () =>
    on({ "run/broken": "" }, async (host) => {
      await assert.rejects(join(host), /timed out/);
      assert.equal(deleted(host).length, 0);
      await join(host);
      assert.equal(resets(host), 0);
      assert.equal(deleted(host).length, 1);
    }));
});

describe("a master that asks to join", () => {
  const row = (n: number, learner = false) =>
    `${n}, started, m${n}, https://192.0.2.${n}:2380, https://192.0.2.${n}:2379, ${learner}`;
  const members = (...rows: string[]) => rows.map((text) => `echo '${text}'`).join("; ");
  const healthy = (...ids: number[]) =>
    ids.map((n) => `echo 'https://192.0.2.${n}:2379 is healthy: took 1ms'`).join("; ");
  const pki = ["ca", "front-proxy-ca", "etcd/ca"].flatMap((name) => [`${name}.crt`, `${name}.key`]);
  const keys = [...pki, "sa.key", "sa.pub"].map((name): [string, string] => [`etc/kubernetes/pki/${name}`, "x"]);
  const files = Object.fromEntries([...keys, ["etc/kubernetes/admin.conf", "x"] as const]);
  const asked = async (list: string, health: string) => {
    const token = "echo 'kubeadm join lb:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1'";
    const crictl = `case "$*" in *"member list"*) ${list} ;; *"endpoint health"*) ${health}; echo x >>"$ROOT/run/tries" ;; esac`;
    const host = fakeHost(files, { kubeadm: token, kubectl: ":", crictl, sleep: ":" });
    try {
      const request = member({ ...membership, name: "m4", local: { address: "192.0.2.4", port: 6443 } }).ask?.({});
      assert.ok(request);
      return (await host.remote.run(request.run, { title: "ask" })).stdout;
    } finally {
      host.end();
    }
  };
  test("is lent a token and the keys", async () => {
    assert.match(
      await asked(members(row(1), row(2), row(3, true)), healthy(1, 2)),
      /^keys=.+\ntoken=abcdef\..*\nhash=/,
    );
  });
  test("is told what to do while members do not answer, before kubeadm waits for them in vain", () =>
    assert.rejects(asked(members(row(1), row(2), row(3)), healthy(1)), (error: RemoteError) => {
      assert.equal(error.failure.code, 3);
      assert.match(error.failure.stderr ?? "", /do not answer: m2 m3;[^]*KUBEXM_FORGET=m2,m3 kubexm up/);
      return true;
    }));
});

describe("etcd's folder", () => {
  const backup = { "run/data/etcd/backup/of-mine": "theirs\n" };
  const kept = (host: FakeHost) => assert.equal(host.read("run/data/etcd/backup/of-mine"), "theirs\n");

  test("with something else in it is refused in words, nothing is begun, and all of it stays", () =>
    on(backup, async (host) => {
      await assert.rejects(join(host), /in \/run\/data\/etcd, which is not empty: backup[^]*\/run\/data\/etcd\/etcd/);
      await assert.rejects(join(host, { leftovers: "clean" }), /which is not empty/);
      await drop(host);
      kept(host);
      assert.deepEqual(
        host.calls().filter((call) => call.startsWith("kubeadm")),
        [],
      );
    }));
  test("is filled where kubeadm was told to, and only etcd's own data goes again", () =>
    on(backup, async (host) => {
      await join(host, { ignored: ["DirAvailable--run-data-etcd"] });
      assert.ok(host.has("run/data/etcd/member"));
      await drop(host);
      assert.ok(!host.has("run/data/etcd/member"));
      kept(host);
    }));
  test("keeps what came into it beside the data of a try that failed", () =>
    on({ "run/broken": "" }, async (host) => {
      await assert.rejects(join(host), /timed out/);
      await host.remote.run(raw("mkdir /run/data/etcd/backup && echo theirs >/run/data/etcd/backup/of-mine"));
      await join(host);
      await drop(host);
      kept(host);
    }));
  test("is nothing to a host that was given no etcd", () =>
    on({ "var/lib/etcd/member/theirs": "theirs\n" }, async (host) => {
      const worker = { ...membership };
      Reflect.deleteProperty(worker, "etcdDir");
      const wanted = work("node", [member(worker)]);
      await converge(host.remote, wanted);
      await drop(host);
      assert.equal(host.read("var/lib/etcd/member/theirs"), "theirs\n");
    }));
});
