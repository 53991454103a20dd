import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse, stringify } from "yaml";
import { type Lab, type LabHost, labExec, withLab } from "../../lab/hosts.js";
import { snapshot } from "../../lab/snapshot.js";
import { changesOn } from "../harness/machine-wide";
import { run } from "../../toolchain/process.js";

const main = join(__dirname, "..", "..", "cli", "main.js");
const cwd = mkdtempSync(join(tmpdir(), "kubexm-preflight-"));
after(() => rmSync(cwd, { recursive: true, force: true }));

interface Row {
  host: string;
  check: string;
  result: string;
  found: string;
  fix?: string;
}

/** What is wrong with which host, how it came about and goes away again, and how the table tells it. */
const FAULTS: readonly { host: number; check: string; result: string; found: RegExp; plant: string; mend: string }[] = [
  {
    host: 0,
    check: "ports",
    result: "fail",
    found: /taken: 10250\/tcp by socat \(PID \d+\)/,
    plant: "systemd-run --quiet --unit=squatter socat TCP-LISTEN:10250,fork,reuseaddr STDOUT",
    mend: "systemctl stop squatter",
  },
  {
    host: 0,
    check: "swap",
    result: "warn",
    found: /on: \/swapfile/,
    plant: `printf 'Filename Type Size Used Priority\\n/swapfile file 1048572 0 -2\\n' >/run/swaps && mount --bind /run/swaps /proc/swaps`,
    mend: "umount /proc/swaps && rm /run/swaps",
  },
  {
    // Made with the lab, as its own file system.
    host: 0,
    check: "disk",
    result: "fail",
    found: /0\.0 GiB free on \/var\/lib\/etcd, 4 GiB are needed/,
    plant: ":",
    mend: ":",
  },
  {
    host: 0,
    check: "existing",
    result: "fail",
    found: /^\/var\/lib\/etcd, where etcd is to keep its data, holds somebody's/,
    plant: `mkdir "/var/lib/etcd/somebody's"`,
    mend: `rmdir "/var/lib/etcd/somebody's"`,
  },
  {
    host: 1,
    check: "hostname",
    result: "fail",
    found: /calls itself node1, which is another host/,
    plant: "hostname node1",
    mend: "hostname node2",
  },
  {
    host: 1,
    check: "existing",
    result: "fail",
    found: /\/usr\/local\/bin\/containerd \(containerd: containerd 1\.6\.1 of somebody\).*containerd\.service/,
    plant: `printf '#!/bin/sh\\necho containerd 1.6.1 of somebody\\n' >/usr/local/bin/containerd
chmod 755 /usr/local/bin/containerd
printf '[Service]\\nExecStart=/usr/local/bin/containerd\\n' >/etc/systemd/system/containerd.service`,
    mend: "rm /usr/local/bin/containerd /etc/systemd/system/containerd.service",
  },
  {
    host: 1,
    check: "clock",
    result: "fail",
    found: /6\d\.\d s before the median/,
    plant: `printf '#!/bin/sh\\nexec /usr/bin/date -d "61 seconds" "$@"\\n' >/usr/local/bin/date && chmod 755 /usr/local/bin/date`,
    mend: "rm /usr/local/bin/date",
  },
  { host: 2, check: "memory", result: "fail", found: /^0\.5 GiB/, plant: ":", mend: ":" },
  {
    host: 2,
    check: "dns",
    result: "fail",
    found: /no answer within 2 seconds from 192\.0\.2\.53/,
    plant: "cp /etc/resolv.conf /root/resolv.conf && echo nameserver 192.0.2.53 >/etc/resolv.conf",
    mend: "cat /root/resolv.conf >/etc/resolv.conf",
  },
  {
    host: 2,
    check: "reachability",
    result: "fail",
    found: /node1:6443 \(no answer/,
    plant: `nft 'add table inet fault; add chain inet fault out { type filter hook output priority 0; }; add rule inet fault out tcp dport 6443 drop'`,
    mend: "nft delete table inet fault",
  },
];
/** What is left after mending is what the lab itself is made with. */
const UNMENDED = ["disk", "memory"];

const hostOf = ({ hosts }: Lab, at: number): LabHost => {
  const host = hosts[at];
  assert.ok(host);
  return host;
};

test("planted faults are all told at once, before anything is changed; ignorePreflight lets them through", async (t) => {
  const options = {
    hosts: [{ name: "node1", tmpfs: { "/var/lib/etcd": "8m" } }, "node2", { name: "node3", memory: "512m" }],
    cwd,
  };
  await withLab(options, async (lab) => {
    const file = join(cwd, "cluster.yaml");
    const cluster = parse(readFileSync(lab.clusterYaml, "utf8")) as { spec: Record<string, unknown> };
    const write = (spec: Record<string, unknown>) =>
      writeFileSync(file, stringify({ ...cluster, spec: { ...cluster.spec, ...spec } }));
    const kubexm = (verb: string, ...flags: string[]) =>
      run(process.execPath, [main, verb, "-f", file, ...flags], { cwd, okCodes: [0, 1, 2] });
    const onAll = (act: "plant" | "mend") =>
      Promise.all(FAULTS.map((fault) => labExec(hostOf(lab, fault.host), fault[act])));
    write({});
    await onAll("plant");
    const before = await Promise.all(lab.hosts.map((host) => snapshot(host)));

    await t.test("kubexm preflight names each with its fix", async () => {
      const told = await kubexm("preflight", "--json");
      assert.equal(told.code, 1, told.stdout + told.stderr);
      const { rows } = JSON.parse(told.stdout) as { rows: Row[] };
      for (const { host, check, result, found } of FAULTS) {
        const row = rows.find((row) => row.host === `node${host + 1}` && row.check === check);
        assert.ok(row, `${check} of node${host + 1} is missing`);
        assert.match(row.found, found);
        assert.equal(row.result, result, `${check}: ${row.found}`);
        assert.ok((row.fix ?? "").length > 10, `${check} has no fix`);
      }
      const failed = rows.filter(({ result }) => result === "fail").map(({ host, check }) => `${host} ${check}`);
      const planted = FAULTS.filter(({ result }) => result === "fail");
      assert.deepEqual(failed.sort(), planted.map(({ host, check }) => `node${host + 1} ${check}`).sort());
    });

    await t.test("up stops with the whole table", async () => {
      const { code, stdout, stderr } = await kubexm("up", "--yes");
      assert.equal(code, 1, stdout + stderr);
      const output = stdout + stderr;
      assert.match(output, /3 hosts: 9 failures, \d+ warnings?, \d+ passed; nothing was changed/);
      assert.match(
        output,
        /Mend what failed and run again, or name them in the cluster file: ignorePreflight: \[[^\]]+\]/,
      );
      for (const { check, found } of FAULTS)
        if (found.source.startsWith("^")) assert.match(output, new RegExp(`${check} +FAIL +${found.source.slice(1)}`));
        else assert.match(output, found);
    });

    await t.test("and nothing was changed on any host", async () => {
      for (const [i, host] of lab.hosts.entries()) {
        const now = await snapshot(host);
        assert.equal(changesOn(before[i] ?? {}, now), "", host.name);
      }
    });

    const preflightOnly = ["--yes", "--target", "**preflight", "--target", "**:Cluster::**"];
    await t.test("once they are mended, or ignored, up goes on by itself", async () => {
      await onAll("mend");
      const still = await kubexm("up", ...preflightOnly);
      assert.match(still.stdout + still.stderr, /3 hosts: 2 failures/);
      write({ ignorePreflight: UNMENDED });
      const told = await kubexm("preflight");
      assert.equal(told.code, 0, told.stdout + told.stderr);
      assert.match(told.stdout, /node3 +memory +warn .*\(ignored as asked\)/);
      const done = await kubexm("up", ...preflightOnly);
      assert.equal(done.code, 0, done.stdout + done.stderr);
    });

    await t.test("a second up looks at nothing again, even with a look first", async () => {
      await labExec(hostOf(lab, 1), "hostname node1");
      const again = await kubexm("up", ...preflightOnly, "--refresh", "--expect-no-changes");
      assert.equal(again.code, 0, again.stdout + again.stderr);
      assert.match(again.stdout, /no changes: /);
    });

    await t.test("a change of what is asked looks again", async () => {
      write({ ignorePreflight: UNMENDED, system: { timezone: "Europe/Berlin" } });
      const again = await kubexm("up", ...preflightOnly);
      assert.equal(again.code, 1);
      assert.match(again.stdout + again.stderr, /node2 +hostname +FAIL +it calls itself node1/);
    });

    await t.test("what only shows beside the others is looked at again, too: mended, up goes on", async () => {
      await labExec(hostOf(lab, 1), "hostname node2");
      const done = await kubexm("up", ...preflightOnly);
      assert.equal(done.code, 0, done.stdout + done.stderr);
    });

    await t.test("and so it is before the first up has come through", async () => {
      const gone = await kubexm("destroy", "--yes");
      assert.equal(gone.code, 0, gone.stdout + gone.stderr);
      await labExec(hostOf(lab, 1), "hostname node1");
      // Twice, as nothing is mended: the second run finds what the first one stored.
      for (const round of ["first", "second"]) {
        const refused = await kubexm("up", ...preflightOnly);
        assert.equal(refused.code, 1, round);
        assert.match(refused.stdout + refused.stderr, /3 hosts: 1 failure, /, round);
        assert.match(refused.stdout + refused.stderr, /node2 +hostname +FAIL +it calls itself node1/, round);
      }
      await labExec(hostOf(lab, 1), "hostname node2");
      const done = await kubexm("up", ...preflightOnly);
      assert.equal(done.code, 0, done.stdout + done.stderr);
      const again = await kubexm("up", ...preflightOnly, "--expect-no-changes");
      assert.equal(again.code, 0, again.stdout + again.stderr);
    });
  });
});
