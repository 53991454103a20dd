import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anyLabName, labDown, labExec, labUp, startHost, stopHost, type Lab, type LabHost } from "../../lab/hosts";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import { definitionOf } from "../../provider/definition";
import { create, read, remove, type Inputs } from "../../provider/lifecycle";
import { closeAll, connect } from "../../provider/ssh";
import { cuttingProxy, type CuttingProxy } from "../harness/cutting-proxy";
import { boxFiles, given, holds, place } from "../harness/fault-box";
import { changedSince, converges, reverts, tally, tell } from "../harness/fault-run";
import { elsewhere, here } from "../harness/provider-process";
import { changesOf, quickState, type QuickState } from "../harness/quick-state";

const NAME = anyLabName();
const SMALL = "/small";
const scratch = mkdtempSync(join(tmpdir(), "kubexm-faults-"));
const files = boxFiles(scratch);

/** Holds dpkg's lock as apt does, by fcntl, which flock(1) knows nothing of; for at least as long as the file is there. */
const HOLD_LOCK = `touch /run/hold
perl -e 'open F, "+>>", "/var/lib/dpkg/lock-frontend"; $lock = pack("s s x4 q q i x4", 1, 0, 0, 0, 0); fcntl(F, 6, $lock) or die; print "held\\n"; close STDOUT; sleep 1 while -e "/run/hold"' >/run/held 2>&1 &
for i in $(seq 50); do grep -q held /run/held && exit; sleep 0.1; done; cat /run/held >&2; exit 1`;

/** Half of a package comes out of its archive, then whoever unpacks it is killed. */
const DEADLY_UNPACKING = `mv /usr/bin/dpkg-deb /usr/bin/dpkg-deb.own
cat >/usr/bin/dpkg-deb <<'END'
#!/bin/sh
case "$*" in
  *fsys-tarfile*) dpkg-deb.own "$@" | head -c 50000; kill -9 $PPID ;;
  *) exec dpkg-deb.own "$@" ;;
esac
END
chmod 755 /usr/bin/dpkg-deb`;

/** What runs at one point of the removal of `tree` kills dpkg, once. */
const deadlyRemoval = (script: string, point: string) => `rm -f /run/struck
cat >/var/lib/dpkg/info/tree.${script} <<'END'
#!/bin/sh
[ "$1" != ${point} ] || [ -e /run/struck ] || { : >/run/struck; kill -9 $PPID; }
END
chmod 755 /var/lib/dpkg/info/tree.${script}`;

describe("faults of hosts and of people", () => {
  let lab: Lab;
  let host: LabHost;
  let proxy: CuttingProxy;
  let whole: Snapshot;
  let quick: QuickState;
  before(async () => {
    lab = await labUp({ name: NAME, hosts: 1, keep: false, tmpfs: { [SMALL]: "1m" } });
    const [first] = lab.hosts;
    assert.ok(first);
    host = first;
    proxy = await cuttingProxy(host.address, host.port);
    await labExec(host, `${given}; chmod 755 ${SMALL}`);
    await labExec(host, "apt-get update -q >/dev/null");
    whole = await snapshot(host);
    quick = await quickState(host);
  });
  after(async () => {
    await closeAll();
    await proxy.close();
    await labDown(NAME);
    rmSync(scratch, { recursive: true, force: true });
  });

  const inputs = (more: Inputs = {}, name = "box", stack = "faults"): Inputs => ({
    version: "1",
    ...files,
    ...place(lab, host, name, stack),
    ...more,
  });
  const proxied = (): Inputs => {
    const all = inputs();
    const own = { address: "127.0.0.1", port: proxy.port, hostKeyChecking: "accept-new" };
    return { ...all, host: { ...(all["host"] as object), ...own, knownHostsPath: join(scratch, "known") } };
  };
  const heard = (list: string[]) => ({
    connect,
    tell: (_urn: string, text: string) => void list.push(text),
    forgotten: [],
    ending: false,
    renewed: new Set<string>(),
    controller: "a test",
  });
  const until = async (script: string) => {
    for (let i = 0; i < 600; i++) {
      if ((await labExec(host, `if ${script}; then echo yes; fi`)).stdout.includes("yes")) return;
      await sleep(50);
    }
    assert.fail(`never came about: ${script}`);
  };
  /** As if the plug were pulled while `call` is at work. */
  const pullPlug = async (when: string, call: Parameters<typeof elsewhere>[0]) => {
    const { child, answer } = await elsewhere(call);
    await until(when);
    await stopHost(host, true);
    child.kill("SIGKILL");
    await answer;
    await startHost(host);
  };

  test("reboots in the middle of making, of installing and of undoing", async () => {
    const counts = tally();
    const slow = inputs({ pause: 5 });
    const installing = inputs({ packages: ["tree", "chrony"] });
    const rows = [
      { wanted: slow, verb: "create", when: "test -L /srv/kxf.link && systemctl is-active -q kxf.service" },
      { wanted: installing, verb: "create", when: "ls /var/lib/dpkg/updates | grep -q . || pgrep -x dpkg" },
      { wanted: slow, verb: "delete", when: "pgrep -fx 'sleep 5'" },
    ] as const;
    for (const { wanted, verb, when } of rows) {
      counts.tried++;
      const olds = verb === "delete" ? await converges(host, wanted) : undefined;
      await pullPlug(when, olds ? { verb: "delete", props: olds } : { verb: "create", inputs: wanted });
      counts.struck++;
      await converges(host, { ...wanted, pause: 0 });
      counts.converged++;
      await reverts(host, quick, wanted);
      counts.reverted++;
    }
    tell("host reboots", counts);
    assert.equal(await changedSince(whole, host), "");
  });

  test("dpkg killed in the middle of unpacking, and undone without another try", async () => {
    await labExec(host, DEADLY_UNPACKING);
    const { error, halfMade } = await here({ verb: "create", inputs: inputs({ packages: ["tree"] }) });
    await labExec(host, "mv /usr/bin/dpkg-deb.own /usr/bin/dpkg-deb");
    assert.match(error ?? "", /dpkg was interrupted/);
    assert.ok(halfMade);
    assert.match(
      (await labExec(host, "find /usr -name '*.dpkg-new'; ls /var/lib/dpkg")).stdout,
      /dpkg-new\n[^]*tmp\.ci/,
    );
    await reverts(host, quick, halfMade);
    assert.equal(await changedSince(whole, host), "");
  });

  for (const [script, point, state] of [
    ["prerm", "remove", "half-configured"],
    ["postrm", "remove", "half-installed"],
    ["postrm", "purge", "config-files"],
  ] as const)
    test(`dpkg killed in the middle of removing, where a package is ${state}: the next destroy takes the rest`, async () => {
      const outs = await converges(host, inputs({ packages: ["tree"] }));
      await labExec(host, deadlyRemoval(script, point));
      const { error } = await here({ verb: "delete", props: outs });
      assert.ok(error);
      assert.equal((await labExec(host, "dpkg-query -W -f '${db:Status-Status}' tree")).stdout, state);
      await reverts(host, quick, outs);
      assert.equal(await changedSince(whole, host), "");
    });

  test("the package lock held by another process: waits, names it, succeeds", async () => {
    const wanted = inputs({ packages: ["tree"] });
    for (const verb of ["create", "delete"] as const) {
      await labExec(host, HOLD_LOCK);
      const told: string[] = [];
      const waits = () => told.some((text) => /waits for the package lock held by perl .*\(pid \d+\)/.test(text));
      const work =
        verb === "create"
          ? create(definitionOf("FaultBox"), heard(told), wanted)
          : remove(definitionOf("FaultBox"), heard(told), wanted);
      for (let i = 0; i < 600 && !waits(); i++) await sleep(50);
      await labExec(host, "rm /run/hold");
      await work;
      assert.ok(waits(), told.join("\n"));
      if (verb === "create") await labExec(host, `${holds("1")}; dpkg -s tree >/dev/null`);
    }
    assert.equal(changesOf(quick, await quickState(host)), "");
  });

  test("a full disk where a program goes: the old one stays, the message names host and path", async () => {
    await labExec(host, `printf 'old' >${SMALL}/kxf-tool; head -c 900k /dev/zero >${SMALL}/filling`);
    const wanted = inputs({ folder: SMALL });
    const { error, halfMade } = await here({ verb: "create", inputs: wanted });
    assert.match(error ?? "", /node1.*\/small\/kxf-tool[\s\S]*No space left on device/);
    assert.ok(halfMade);
    assert.equal((await labExec(host, `cat ${SMALL}/kxf-tool`)).stdout, "old");
    await labExec(host, `rm ${SMALL}/filling`);
    await converges(host, wanted, halfMade);
    await reverts(host, quick, wanted);
    assert.equal((await labExec(host, `cat ${SMALL}/kxf-tool; rm ${SMALL}/kxf-tool`)).stdout, "old");
  });

  test("a full disk where a file goes", async () => {
    const folder = "/etc/kxf/deep";
    await labExec(
      host,
      `mkdir -p ${folder} && mount -t tmpfs -o size=4k tmpfs ${folder} && head -c 4k /dev/zero >${folder}/filling`,
    );
    const wanted = inputs();
    const { error } = await here({ verb: "create", inputs: wanted });
    assert.match(error ?? "", /node1.*path \/etc\/kxf\/deep\/conf[\s\S]*No space left on device/);
    await labExec(host, `umount ${folder} && rmdir ${folder} /etc/kxf`);
    await converges(host, wanted);
    await reverts(host, quick, wanted);
  });

  const elsewhereWith = (options: string) =>
    labExec(host, `mkdir -m 700 /var/lib/kubexm && mount -t tmpfs -o ${options} tmpfs /var/lib/kubexm`);
  /** What was saved moves to the disk below, as an administrator would do it. */
  const moveBack = () =>
    labExec(
      host,
      "cp -a /var/lib/kubexm /root/k && umount /var/lib/kubexm && rmdir /var/lib/kubexm && mv /root/k /var/lib/kubexm",
    );

  test("a /var where no program may run", async () => {
    await elsewhereWith("noexec");
    const wanted = inputs();
    await converges(host, wanted);
    await moveBack();
    await reverts(host, quick, wanted);
  });

  for (const size of ["32k", "100k", "360k"])
    test(`a full disk where the ledger is, at ${size}`, async () => {
      await elsewhereWith(`size=${size}`);
      const wanted = inputs();
      const { error } = await here({ verb: "create", inputs: wanted });
      assert.match(error ?? "", /node1.*[\s\S]*(No space left on device|does not fit)/);
      await moveBack();
      await converges(host, wanted);
      await reverts(host, quick, wanted);
    });

  test("bits that flip on the way, both ways", async () => {
    const counts = tally();
    await proxy.set(undefined);
    const wanted = proxied();
    await converges(host, wanted);
    const all = proxy.counted();
    await reverts(host, quick, wanted);
    const points = (["toHost", "fromHost"] as const).flatMap((way) =>
      [0.1, 0.4, 0.7, 0.97].map((part) => ({ way, after: Math.floor(all[way] * part), kind: "flip" as const })),
    );
    for (const fault of points) {
      counts.tried++;
      await proxy.set(fault);
      const { error } = await here({ verb: "create", inputs: wanted });
      if (proxy.struck() > 0) counts.struck++;
      if (error !== undefined) assert.match(error, /cannot be reached|broke|connection/i);
      await proxy.set(undefined);
      await converges(host, wanted);
      counts.converged++;
      await reverts(host, quick, wanted);
      counts.reverted++;
    }
    tell("bit flipped on the way", counts);
    assert.ok(counts.struck >= 6, `only ${counts.struck} struck`);
  });

  test("a host that swallows everything: one clear message", async () => {
    await proxy.set({ kind: "stop", way: "fromHost", after: 0 });
    const wanted = proxied();
    const { error, halfMade } = await here({ verb: "create", inputs: wanted });
    assert.match(error ?? "", /^node1: 127\.0\.0\.1:\d+ cannot be reached: /);
    assert.match(error ?? "", /what to do: /);
    assert.equal(halfMade, undefined);
    await proxy.set(undefined);
    await converges(host, wanted);
    await reverts(host, quick, wanted);
  });

  test("a host that falls silent in the middle of its work: told within a minute, and the next run finishes it", async () => {
    const wanted = inputs({ pause: 3 });
    await proxy.set(undefined);
    await converges(host, proxied());
    const { fromHost } = proxy.counted();
    await reverts(host, quick, proxied());
    await proxy.set({ kind: "stop", way: "fromHost", after: Math.floor(fromHost * 0.7) });
    const { error, halfMade } = await here({ verb: "create", inputs: { ...proxied(), pause: 3 } });
    assert.equal(proxy.struck(), 1);
    assert.match(error ?? "", /^node1 › .* › .*: the connection to 127\.0\.0\.1:\d+ broke while it ran/);
    assert.ok(halfMade);
    await converges(host, { ...wanted, pause: 0 });
    await reverts(host, quick, wanted);
  });

  test("times of files an hour ahead, as a clock that was off leaves them", async () => {
    const wanted = inputs();
    const outs = await converges(host, wanted);
    await labExec(
      host,
      "find /etc/kxf /etc/kxf.over /etc/systemd/system/kxf.service /opt/kxf /var/lib/kubexm -exec touch -hd '+1 hour' {} +",
    );
    const { drift } = await read(definitionOf("FaultBox"), heard([]), outs);
    // The archive's files are known by their times, so that they need not be read at every look.
    assert.deepEqual(
      drift.map(({ step }) => step),
      ["archive /opt/kxf"],
    );
    await converges(host, { ...wanted, version: "2" }, outs);
    await reverts(host, quick, wanted);
  });

  test("two controllers: the second is told who is at work; one of the same stack waits", async () => {
    const wanted = inputs({ pause: 12 });
    const first = await elsewhere({ verb: "create", inputs: wanted });
    await until("test -e /srv/kxf.link");
    const other = await here({ verb: "create", inputs: inputs({}, "box2", "other") });
    assert.match(
      other.error ?? "",
      new RegExp(
        `the host is locked[\\s\\S]*being changed by urn:pulumi:faults::kubexm .*pid ${first.child.pid ?? 0} .*FaultBox box`,
      ),
    );
    const same = here({ verb: "create", inputs: inputs({}, "box2") });
    assert.equal((await first.answer)?.error, undefined);
    assert.equal((await same).error, undefined);
    await labExec(host, holds("1"));
    // The other one's half-made resource has nothing here yet; both of this stack want the same things.
    for (const [name, stack] of [
      ["box2", "other"],
      ["box2", "faults"],
    ] as const)
      await here({ verb: "delete", props: inputs({}, name, stack) });
    await labExec(host, holds("1"));
    await reverts(host, quick, inputs());
  });

  test("what other people changed since is kept, and told", async () => {
    const wanted = inputs();
    await converges(host, wanted);
    await labExec(host, "echo theirs >/etc/kxf.over; echo 'their=1' >>/etc/kxf.env");
    const told: string[] = [];
    await remove(definitionOf("FaultBox"), heard(told), wanted);
    assert.match(told.join("\n"), /kept path \/etc\/kxf\.over: somebody changed it since/);
    assert.equal((await labExec(host, "cat /etc/kxf.over /etc/kxf.env")).stdout, "theirs\nmine=1\ntheir=1\n");
    await labExec(
      host,
      "rm -f /etc/kxf.over.before-kubexm; printf old >/etc/kxf.over; printf 'mine=1' >/etc/kxf.env; chmod 604 /etc/kxf.over",
    );
    assert.equal(changesOf(quick, await quickState(host)), "");
  });

  test("a lost state: create adopts, and delete still gives the host back", async () => {
    const wanted = inputs({ packages: ["tree"] });
    await converges(host, wanted);
    await converges(host, wanted);
    await reverts(host, quick, wanted);
  });

  test("a resource under a new name, and two that want one package: things stay until the last goes", async () => {
    const [old, renamed] = [inputs({ packages: ["tree"] }, "old"), inputs({ packages: ["tree"] }, "new")];
    await converges(host, old);
    await converges(host, renamed);
    const told: string[] = [];
    await remove(definitionOf("FaultBox"), heard(told), old);
    assert.match(told.join("\n"), /kept package tree: FaultBox\.new wants it too/);
    await labExec(host, `${holds("1")}; dpkg -s tree >/dev/null`);
    await reverts(host, quick, renamed);
    assert.equal(await changedSince(whole, host), "");
  });

  test("configuration of packages that were removed but not purged stays: of those asked for, and of those that came along", async () => {
    await labExec(
      host,
      `apt-get install -yq --no-install-recommends nano nfs-common >/dev/null
echo '# theirs' | tee -a /etc/default/rpcbind >>/etc/nanorc
apt-get remove -yq nano rpcbind >/dev/null; apt-get purge -yq nfs-common >/dev/null`,
    );
    const [before, quickly] = [await snapshot(host), await quickState(host)];
    const wanted = inputs({ packages: ["nano", "nfs-common"] });
    await converges(host, wanted);
    await labExec(host, "dpkg -s rpcbind | grep -q ' installed$'");
    await reverts(host, quickly, wanted);
    assert.equal(await changedSince(before, host), "");
  });
});
