import assert from "node:assert/strict";
import { after, test } from "node:test";
import { labExec, withLab } from "../../lab/hosts";
import { revert } from "../../provider/engine";
import { sh } from "../../provider/shell";
import { closeAll, connect, hostSpec } from "../../provider/ssh";
import type { Step } from "../../provider/step";
import { data } from "../../provider/steps";
import { resetNode } from "../../resources/kubernetes/reset";
import { removeContainers } from "../../resources/runtime/remove-containers";
import { context, converge, work } from "../harness/step-cases";

after(() => closeAll());

const DISKS = ["/var/lib/kubelet/pods", "/var/lib/containerd/disk"];

/** What kubeadm does to kubelet's folder, whosever disks are mounted below it; and a containerd that can be stopped. */
const PROGRAMS = `printf '[Service]\\nExecStart=/bin/true\\n' >/etc/systemd/system/containerd.service
systemctl daemon-reload
cat >/usr/local/bin/kubeadm <<'END'
#!/bin/sh
sed -n 's#^[^ ]* \\(/var/lib/kubelet/[^ ]*\\) .*#\\1#p' /proc/mounts | while read -r at; do umount "$at"; done
rm -rf /var/lib/kubelet/*
END
chmod 755 /usr/local/bin/kubeadm`;

/** Two that look after a container of some containerd: of ours, and of another that is none of our business. */
const SHIMS = `printf '#!/bin/sh\\nsleep 600\\n' >/usr/local/bin/containerd-shim-x
chmod 755 /usr/local/bin/containerd-shim-x
for at in /run/containerd /run/other; do
  setsid containerd-shim-x -namespace n -address $at/containerd.sock -id 1 </dev/null >/dev/null 2>&1 &
done`;

const node: Step = {
  id: "node",
  want: { recorded: "yes" },
  look: sh`if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi`,
  make: sh`:`,
  undo: sh`${resetNode()}
reset_node`,
};

test("disks of the administrator's below data folders are there after destroy, with what is on them", () =>
  withLab({ hosts: 1 }, async ({ hosts: [host], knownHostsPath }) => {
    assert.ok(host);
    const mounted = async () =>
      (await labExec(host, "sed -n 's#^[^ ]* \\(/var/lib/k[^ ]*\\|/var/lib/c[^ ]*\\) .*#\\1#p' /proc/mounts | sort"))
        .stdout;
    const { name, address, user, privateKeyPath } = host;
    const remote = await connect(hostSpec.parse({ name, address, user, privateKeyPath, knownHostsPath }));
    for (const disk of DISKS)
      await labExec(host, `mkdir -p ${disk} && mount -t tmpfs -o size=1m disk ${disk} && echo theirs >${disk}/file`);
    const before = await mounted();
    const wanted = work("mounts", [
      data("/var/lib/kubelet"),
      data("/var/lib/containerd"),
      removeContainers("/var/lib/containerd"),
      node,
    ]);
    await converge(remote, wanted);
    const volumes = [
      "/var/lib/kubelet/pods/1/volumes/v",
      "/var/lib/kubelet/plugins/p",
      "/var/lib/containerd/tmpmounts/t",
    ];
    for (const volume of volumes) await labExec(host, `mkdir -p ${volume} && mount -t tmpfs volume ${volume}`);
    await labExec(host, `${PROGRAMS}\n${SHIMS}`);
    await revert(remote, "mounts", false, context("mounts"));
    assert.equal(await mounted(), before);
    const shims = "ps -C containerd-shim-x -o args= | sed 's/.*-address //; s/ .*//'";
    assert.equal((await labExec(host, shims)).stdout, "/run/other/containerd.sock\n");
    assert.match(before, /containerd\/disk\n.*kubelet\/pods\n$/);
    for (const disk of DISKS) assert.equal((await labExec(host, `cat ${disk}/file`)).stdout, "theirs\n");
    const left = "ls /var/lib/kubelet /var/lib/containerd; test ! -e /run/kubexm-mounts";
    assert.equal((await labExec(host, left)).stdout, "/var/lib/containerd:\ndisk\n\n/var/lib/kubelet:\npods\n");
  }));
