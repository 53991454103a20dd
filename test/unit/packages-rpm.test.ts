import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import { packages } from "../../provider/steps";
import { accounts, accountsTaken, dnf, having, sorted } from "../harness/fake-rpm";
import { context, converge, differing, raw, walk, work } from "../harness/step-cases";

describe("packages by rpm and dnf", () => {
  test("a version is asked for in dnf's words, and the one that was there comes back", async () => {
    const host = having("bash 5.1-1\ntool 1.0-1\n");
    await walk(host.remote, {
      name: "pinned",
      steps: [packages(["tool"], { version: "2.0-3" })],
      holds: "grep -qx 'tool 2.0-3' /etc/rpms",
      drifts: [{ by: "dnf install tool-1.5-1", step: "package tool" }],
    });
    assert.ok(host.calls().includes("dnf -y install tool-2.0-3"));
    assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1", "tool 1.0-1"]);
    host.end();
  });
  test("one that cannot be had any more stays, and that is told; so does what somebody upgraded since", async () => {
    const wanted = work("A", [packages(["tool"], { version: "2.0-3" })]);
    const host = having("tool 0.9-1\n");
    await converge(host.remote, wanted);
    assert.deepEqual(await revert(host.remote, "A", false, context("A")), [
      "package tool stays at 2.0-3: 0.9-1, which was there before, cannot be had",
    ]);
    await converge(host.remote, work("B", [packages(["tool"], { version: "1.0-1" })]));
    await host.remote.run(raw("dnf install tool-3.0-1"));
    await revert(host.remote, "B", false, context("B"));
    assert.deepEqual(sorted(host.read("etc/rpms")), ["tool 3.0-1"]);
    host.end();
  });
  test("held by dnf's plugin, and let go again", async () => {
    const host = having("bash 5.1-1\n");
    await walk(host.remote, {
      name: "held",
      steps: [packages(["tool"], { hold: true })],
      holds: "grep -q '^tool-0:' /etc/dnf/plugins/versionlock.list",
      drifts: [{ by: "dnf versionlock delete tool", step: "package tool" }],
    });
    assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1"]);
    assert.equal(host.read("etc/dnf/plugins/versionlock.list"), "");
    host.end();
  });
  test("held without the plugin: told what is missing", async () => {
    const host = having("tool 1.0-1\n", { dnf: "case $* in *versionlock*) exit 1 ;; esac" });
    const wanted = work("A", [packages(["tool"], { hold: true })]);
    await assert.rejects(converge(host.remote, wanted), /install python3-dnf-plugin-versionlock first/);
    assert.deepEqual(await differing(host.remote, wanted), ["package tool"]);
    host.end();
  });
  test("what others came to need stays, and that is told", async () => {
    const host = having("bash 5.1-1\n");
    await converge(host.remote, work("A", [packages(["tool", "other"])]));
    await host.remote.run(raw("echo 'theirs 1.0-1 tool' >>/etc/rpms"));
    assert.deepEqual(await revert(host.remote, "A", false, context("A")), ["kept package tool: theirs needs it"]);
    assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1", "theirs 1.0-1 tool", "tool 1.0-1"]);
    host.end();
  });
  test("of a package that stays, the accounts stay, too", async () => {
    const bringing = `case $* in *install*tool*) echo 'tool:x:9:9::/:/bin/sh' >>"$ROOT/etc/passwd" ;; esac\n${dnf}`;
    const host = having("bash 5.1-1\n", { dnf: bringing, ...accounts });
    await converge(host.remote, work("A", [packages(["tool", "other"])]));
    await host.remote.run(raw("echo 'theirs 1.0-1 tool' >>/etc/rpms"));
    assert.deepEqual(await revert(host.remote, "A", false, context("A")), [
      "kept package tool: theirs needs it",
      "kept users and groups that came with packages: tool",
    ]);
    assert.deepEqual(accountsTaken(host.calls()), []);
    host.end();
  });
  test("a database that cannot be opened is an error, to a look as to an undo", async () => {
    const wanted = work("A", [packages(["tool"])]);
    const host = having("bash 5.1-1\n");
    await converge(host.remote, wanted);
    await host.remote.run(raw(": >/run/unread"));
    await assert.rejects(differing(host.remote, wanted), /cannot open Packages/);
    await assert.rejects(revert(host.remote, "A", false, context("A")), /cannot open Packages/);
    await host.remote.run(raw("rm /run/unread"));
    await revert(host.remote, "A", false, context("A"));
    assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1"]);
    host.end();
  });
  describe("an install that fails after it brought something", () => {
    const failing = `case $*-$(ls "$ROOT/run") in *install*-*broken*) echo 'dep 1.0-1' >>"$ROOT/etc/rpms"; exit 1 ;; esac\n${dnf}`;
    const wanted = work("A", [packages(["tool"])]);
    const begun = async () => {
      const host = having("bash 5.1-1\n", { dnf: failing, ...accounts });
      await host.remote.run(raw(": >/run/broken"));
      await assert.rejects(converge(host.remote, wanted));
      assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1", "dep 1.0-1"]);
      await host.remote.run(raw("rm /run/broken"));
      return host;
    };
    test("taken back at once: it goes", async () => {
      const host = await begun();
      await revert(host.remote, "A", false, context("A"));
      assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1"]);
      host.end();
    });
    test("what somebody installs before the next try is theirs, and so is an account", async () => {
      const host = await begun();
      await host.remote.run(raw("echo 'theirs 1.0-1' >>/etc/rpms; echo 'bob:x:1000:1000::/:/bin/sh' >>/etc/passwd"));
      await converge(host.remote, wanted);
      await revert(host.remote, "A", false, context("A"));
      assert.deepEqual(sorted(host.read("etc/rpms")), ["bash 5.1-1", "theirs 1.0-1"]);
      assert.deepEqual(accountsTaken(host.calls()), []);
      host.end();
    });
  });
});
