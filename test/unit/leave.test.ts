import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ask } from "../../provider/ask";
import { hostSpec } from "../../provider/ssh/spec";
import { leave } from "../../resources/kubernetes/leave";
import { execRemote } from "../harness/exec-remote";
import { raw } from "../harness/step-cases";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-leave-"));
after(() => rmSync(scratch, { recursive: true }));

/** Three masters that are asked to let a node go, with these programs in place of theirs; `drained` counts the tries. */
function masters(kubectl: string, etcdctl = "") {
  const dir = mkdtempSync(join(scratch, "m-"));
  const program = (name: string, text: string) => {
    writeFileSync(join(dir, name), `#!/bin/sh\ncd ${dir} || exit 9\ncase "$*" in\n${text}\nesac\n`);
    chmodSync(join(dir, name), 0o755);
  };
  program("kubectl", `*configmap*) ;;\n${kubectl}\n*"get node"*) echo n1 True ;;`);
  program("crictl", etcdctl);
  writeFileSync(join(dir, "admin.conf"), "x");
  const placed = (text: string) =>
    text
      .replaceAll("/usr/local/bin/", `${dir}/`)
      .replaceAll("/etc/kubernetes/admin.conf", join(dir, "admin.conf"))
      .replaceAll("/run/kubexm-", join(dir, ""));
  const letGo = (role: "master" | "worker", lost = false) => {
    const hosts = ["m1", "m2", "m3"].map((name) => hostSpec.parse({ name, address: name }));
    const node = { name: "n1", addresses: ["192.0.2.7"], role };
    const wanted = leave({ ...node, masters: hosts, drain: { timeout: 300, force: false }, lost });
    return ask({ ...wanted, run: raw(placed(wanted.run.text)) }, ({ name }) =>
      Promise.resolve(execRemote(name, ["env"])),
    );
  };
  return {
    letGo,
    tries: (name: string) => readFileSync(join(dir, name), "utf8").trim().split("\n").length,
    has: (name: string) => existsSync(join(dir, name)),
  };
}

const held = "echo x >>drains; echo 'Cannot evict pod as it would violate the pod disruption budget' >&2; exit 1";

test("a drain that is held is not tried again at every master", async () => {
  const { letGo, tries } = masters(`*readyz*) ;;\n*drain*) ${held} ;;`);
  await assert.rejects(letGo("worker"), ({ message }: Error) => {
    assert.match(
      message,
      /^m1: take n1 out of the cluster: refused[^]*disruption budget[^]*was not drained within 300 s/,
    );
    assert.doesNotMatch(message, /out of cluster\.yaml/);
    return true;
  });
  assert.equal(tries("drains"), 1);
});

test("of a host that is lost no budget holds the pods: they are gone", async () => {
  const { letGo } = masters(`*readyz*) ;;\n*drain*--disable-eviction*) ;;\n*drain*) ${held} ;;`);
  assert.match((await letGo("worker", true)).text.reveal(), /no longer in the cluster/);
});

test("an API server that fails while it drains leaves it to the next master", async () => {
  const { letGo, tries } = masters(`*readyz*) [ ! -e down ] || { rm down; exit 1; } ;;
*drain*) [ -e drains ] || { : >down; ${held}; }; echo x >>drains ;;`);
  assert.match((await letGo("worker")).text.reveal(), /no longer in the cluster/);
  assert.equal(tries("drains"), 2);
});

test("an API server that does not say whether the node is there leaves it to the next master", async () => {
  const { letGo, tries } = masters(`*readyz*) ;;
*"get node"*) [ -e asked ] || { : >asked; exit 1; }; echo n1 True ;;
*drain*) echo x >>drains ;;`);
  assert.match((await letGo("worker")).text.reveal(), /no longer in the cluster/);
  assert.equal(tries("drains"), 1);
});

test("a majority that would be lost is a no of all masters", async () => {
  const { letGo, tries } = masters(
    "*readyz*) echo x >>asked ;;",
    `*"member list"*) printf '%s\n' '1, started, n1, p, https://n1:2379, false' '2, started, m1, p, https://m1:2379, false' ;;
*"endpoint health"*) echo 'https://n1:2379 is healthy' ;;`,
  );
  await assert.rejects(letGo("master"), /refused[^]*only 0 of 1 members of etcd would be healthy/);
  assert.equal(tries("asked"), 1);
});

test("a member that dies while the node is drained: it is asked again, and neither node nor member is touched", async () => {
  const { letGo, tries, has } = masters(
    "*readyz*) echo x >>asked ;;\n*drain*) : >drained ;;\n*'delete node'*) : >deleted ;;",
    `*"member list"*) printf '%s\n' '1, started, n1, p, https://n1:2379, false' '2, started, m1, p, https://m1:2379, false' '3, started, m2, p, https://m2:2379, false' ;;
*"endpoint health"*) echo 'https://n1:2379 is healthy'; echo 'https://m1:2379 is healthy'; [ -e drained ] || echo 'https://m2:2379 is healthy' ;;
*"member remove"*) : >removed ;;`,
  );
  await assert.rejects(letGo("master"), /refused[^]*only 1 of 2 members[^]*kubectl uncordon n1/);
  assert.ok(has("drained"));
  assert.deepEqual([has("deleted"), has("removed")], [false, false]);
  assert.equal(tries("asked"), 1);
});

test("a member that never started has no name, and no vote: it goes, also where a majority needs all others", async () => {
  const { letGo, has } = masters(
    "*readyz*) ;;\n*drain*) ;;\n*'delete node'*) : >deleted ;;",
    `*"member list"*) printf '%s\\n' '1, started, m1, https://192.0.2.1:2380, https://192.0.2.1:2379, false' '9, unstarted, , https://192.0.2.7:2380, , true' ;;
*"endpoint health"*) echo 'https://192.0.2.1:2379 is healthy' ;;
*"member remove 9"*) : >removed ;;`,
  );
  assert.match((await letGo("master")).text.reveal(), /no longer in the cluster/);
  assert.ok(has("removed"));
});

test("learners do not count for a majority", async () => {
  const { letGo } = masters(
    "*readyz*) ;;",
    `*"member list"*) printf '%s\\n' '1, started, n1, p, https://n1:2379, false' '2, started, m1, p, https://m1:2379, false' '9, unstarted, , p, , true' ;;
*"endpoint health"*) echo 'https://n1:2379 is healthy'; echo 'https://m1:2379 is healthy' ;;`,
  );
  assert.match((await letGo("master")).text.reveal(), /no longer in the cluster/);
});
