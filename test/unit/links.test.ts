import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import type { Step } from "../../provider/step";
import { block, data, swapOff } from "../../provider/steps";
import { fakeHost } from "../harness/fake-host";
import { context, converge, raw, work } from "../harness/step-cases";

interface Row {
  name: string;
  given: string;
  step: Step;
  /** Exits 0 when it is made, and after what a person might do meanwhile. */
  holds: string;
  /** What tells the state before and after, word for word. */
  state: string;
}

const SWAPS = { "proc/swaps": "Filename Type Size Used Priority\n" };

const rows: Row[] = [
  {
    name: "a block in a file that is a link: what stood there stays, and so does the link",
    given:
      "mkdir /etc/real && printf '127.0.0.1 localhost\\n192.0.2.1 theirs' >/etc/real/hosts && ln -s real/hosts /etc/hosts",
    step: block("/etc/hosts", "x", "192.0.2.2 ours\n"),
    holds: "test -L /etc/hosts && grep -q theirs /etc/hosts && grep -q ours /etc/real/hosts",
    state: "readlink /etc/hosts; cat /etc/real/hosts; ls -A /etc/real",
  },
  {
    name: "an fstab that is a link: all other lines stay",
    given:
      "mkdir /etc/real && printf '/dev/a / ext4 defaults 0 1\\n/dev/b none swap sw 0 0\\n' >/etc/real/fstab && ln -s real/fstab /etc/fstab",
    step: swapOff(),
    holds: "test -L /etc/fstab && grep -q '^/dev/a' /etc/fstab && grep -q '^#kubexm# /dev/b' /etc/real/fstab",
    state: "readlink /etc/fstab; cat /etc/real/fstab; ls -A /etc/real",
  },
  {
    name: "the administrator's own configuration of zram comes back",
    given: "mkdir -p /etc/systemd && echo '[zram0]' >/etc/systemd/zram-generator.conf",
    step: swapOff(),
    holds: 'test "$(readlink /etc/systemd/zram-generator.conf)" = /dev/null',
    state: "cat /etc/systemd/zram-generator.conf",
  },
  {
    name: "a folder of data that is a link: its target keeps its rights",
    given: "mkdir -m 700 /etc/disk && ln -s ../../etc/disk /var/lib/etcd && : >/var/lib/etcd/theirs",
    step: data("/var/lib/etcd"),
    holds: ": >/var/lib/etcd/ours && chmod 755 /var/lib/etcd",
    state: "readlink /var/lib/etcd; command -p stat -L -c %a /var/lib/etcd; ls -A /var/lib/etcd",
  },
];

describe("what is a link", () => {
  for (const { name, given, step, holds, state } of rows)
    test(name, async () => {
      const host = fakeHost(SWAPS, { swapoff: ":" });
      const run = async (script: string) => (await host.remote.run(raw(script), { title: script })).stdout;
      try {
        await run(given);
        const before = await run(state);
        assert.notEqual(before, "");
        assert.notDeepEqual(await converge(host.remote, work("A", [step])), []);
        await run(holds);
        assert.deepEqual(await converge(host.remote, work("A", [step])), []);
        await revert(host.remote, "A", false, context("A"));
        assert.equal(await run(state), before);
      } finally {
        host.end();
      }
    });
});
