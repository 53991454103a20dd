import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { controlPlaneSettings } from "../../resources/kubernetes/settings";
import { fakeHost, type FakeHost } from "../harness/fake-host";
import { converge, raw, work } from "../harness/step-cases";

const FILES = {
  "etc/kubernetes/kubexm.yaml": "kind: InitConfiguration\n---\nkind: ClusterConfiguration\nclusterName: c\n",
  "etc/kubernetes/pki/ca.crt": "authority\n",
  "etc/kubernetes/pki/ca.key": "its key\n",
  "etc/kubernetes/pki/apiserver.crt": "old\n",
  "etc/kubernetes/pki/apiserver.key": "old\n",
};

/** Makes a certificate where the configuration says, and only where there is none, as kubeadm does. */
const kubeadm = (ends: number) => `case "$*" in
"init phase certs apiserver --config "*)
  dir=$(sed -n 's/^certificatesDir: //p' "$6")
  dir=\${dir:-$ROOT/etc/kubernetes/pki}
  [ ${ends} = 0 ] || { echo 'disk full' >&2; exit ${ends}; }
  [ -e "$dir/apiserver.crt" ] || for end in crt key; do echo "new by $(cat "$dir/ca.crt")" >"$dir/apiserver.$end"; done ;;
esac`;

async function on(ends: number, use: (host: FakeHost) => Promise<void>) {
  const host = fakeHost(FILES, { kubeadm: kubeadm(ends), kubectl: ":", crictl: ":" });
  try {
    await use(host);
  } finally {
    host.end();
  }
}

const apply = ({ remote }: FakeHost) => converge(remote, work("node", [controlPlaneSettings("settings")]));
const serving = ({ read }: FakeHost) => ["crt", "key"].map((end) => read(`etc/kubernetes/pki/apiserver.${end}`).trim());

describe("the API server's certificate", () => {
  test("is replaced by a new one of the same authority, and nothing stays of the way there", () =>
    on(0, async (host) => {
      await apply(host);
      assert.deepEqual(serving(host), ["new by authority", "new by authority"]);
      await host.remote.run(raw("! ls -d /var/lib/kubexm/ledger/*/pki 2>/dev/null"));
    }));
  test("stays until its successor is there", () =>
    on(1, async (host) => {
      await assert.rejects(apply(host), /disk full/);
      assert.deepEqual(serving(host), ["old", "old"]);
    }));
});

describe("other arguments of the scheduler", () => {
  const manifest = "etc/kubernetes/manifests/kube-scheduler.yaml";
  const words = "/var/log/pods/kube-system_kube-scheduler-m1_1/kube-scheduler/3.log";
  const files = { ...FILES, [manifest]: "old\n", [words]: "2026-01-01T00:00:00Z stderr F unknown flag: --typo\n" };
  const writes = `case "$*" in "init phase control-plane all"*) echo new >"$ROOT/${manifest}" ;; esac\n${kubeadm(0)}`;
  const programs = (crictl: string) => ({ kubeadm: writes, kubectl: ":", crictl, sleep: ":" });
  const running = (now: string) =>
    `case "$*" in "ps --name ^kube-scheduler$ -q") if grep -qx new "$ROOT/${manifest}"; then ${now}; else echo before; fi ;;`;

  test("are in force when the new one has run for some seconds", async () => {
    const host = fakeHost(files, programs(`${running("echo after")} esac`));
    await apply(host);
    assert.ok(host.calls().filter((call) => call === "crictl ps --name ^kube-scheduler$ -q").length >= 5);
    host.end();
  });
  test("that it does not understand end the wait, with its last words from its log where the container is gone", async () => {
    const dies = `*"-a --state exited --name ^kube-scheduler$"*) echo x >>"$ROOT/deaths"; echo "dead$(wc -l <"$ROOT/deaths")" ;; *logs*) exit 1 ;; esac`;
    const host = fakeHost(files, programs(`${running(":")} ${dies}`));
    await assert.rejects(apply(host), /kube-scheduler does not come up; its last words:\s+unknown flag: --typo/);
    host.end();
  });
});
