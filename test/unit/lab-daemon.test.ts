import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { forwardingAfter, mountsBelow, sharedAfter } from "../../lab/daemon.js";
import { bridgeBack } from "../../lab/links.js";
import { run } from "../../toolchain/process.js";

const dir = mkdtempSync(join(tmpdir(), "kubexm-daemon-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Stands for a program: notes how it was called, and answers from a file of this machine's rules. */
function fake(name: string, body: string): void {
  writeFileSync(join(dir, name), `#!/bin/sh\n${body}\n`);
  chmodSync(join(dir, name), 0o755);
}

const [rules, calls] = [join(dir, "rules"), join(dir, "calls")];
fake(
  "ip",
  `case "$1 $2" in
"rule show") cat ${rules} ;;
"rule delete") awk -v n="$4:" -v b="iif $6 " '!(index($0, n) == 1 && index($0, b))' ${rules} >${rules}.new && mv ${rules}.new ${rules} ;;
*) echo "ip $*" >>${calls}; exit 1 ;;
esac`,
);
fake("nft", `echo "nft $*" >>${calls}; exit 1`);
fake("iptables", `echo "iptables $*" >>${calls}`);
fake("iptables-save", "echo '-A FORWARD -i kxlother -j ACCEPT'");

test("the end of our Docker takes its own bridges, and leaves those of labs on another Docker", async () => {
  const others = ["0:\tfrom all lookup local", "20000:\tfrom all to 10.96.0.0/12 iif kxlother unreachable"];
  const ours = ["to 10.96.0.0/12", "to 10.244.0.0/16"].map((to) => `20000:\tfrom all ${to} iif kxlmine unreachable`);
  writeFileSync(rules, [...others, ...ours, ""].join("\n"));
  await run("sh", ["-c", bridgeBack("kxlmine").join("\n")], {
    env: { PATH: [dir, process.env["PATH"]].join(delimiter) },
  });
  assert.deepEqual(readFileSync(rules, "utf8").trimEnd().split("\n"), others);
  assert.deepEqual(readFileSync(calls, "utf8").trimEnd().split("\n"), [
    "ip link delete kxlmine",
    "nft delete table ip kubexm_lab_kxlmine",
  ]);
});

for (const [before, others, after] of [
  ["0\n", false, "0"],
  ["0\n", true, undefined],
  ["1\n", false, undefined],
  ["", false, undefined],
] as const)
  test(`ip_forward was "${before.trim()}", another daemon ${others ? "runs" : "does not run"}: ${after ?? "left"}`, () =>
    assert.equal(forwardingAfter(before, others), after));

test("what hosts share with their machine goes back, unless it was so, somebody else set it, or the kernel has no such thing", () => {
  const before = {
    "kernel/panic": "0",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "0",
    "vm/panic_on_oom": "",
  };
  const now = {
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "2",
    "vm/panic_on_oom": "0",
  };
  assert.deepEqual(sharedAfter(before, now), [["kernel/panic", "0"]]);
});

test("mounts below our folders are found, inner ones first, with any character in their names", () => {
  const mounts = [
    "overlay / overlay rw 0 0",
    "overlay /run/kubexm-lab/docker/a overlay rw 0 0",
    "overlay /data\\040root/overlay2/b/merged overlay rw 0 0",
    "tmpfs /data\\040root/overlay2/b/merged/x tmpfs rw 0 0",
    "tmpfs /data\\040root2/c tmpfs rw 0 0",
    "",
  ].join("\n");
  assert.deepEqual(mountsBelow(mounts, ["/run/kubexm-lab", "/data root"]), [
    "/data root/overlay2/b/merged/x",
    "/data root/overlay2/b/merged",
    "/run/kubexm-lab/docker/a",
  ]);
});
