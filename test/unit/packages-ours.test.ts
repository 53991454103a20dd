import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import { keyOf } from "../../provider/step";
import { file, packages } from "../../provider/steps";
import { accounts, accountsTaken, dnf, having, sorted } from "../harness/fake-rpm";
import { context, converge, raw, work } from "../harness/step-cases";

const L = "/var/lib/kubexm/ledger";
const tool = work("A", [packages(["tool"])]);
const takeBack = (host: ReturnType<typeof having>, owner: string, keep = false) =>
  revert(host.remote, owner, keep, context(owner));
const installed = (host: ReturnType<typeof having>) => sorted(host.read("etc/rpms"));

describe("which packages and accounts are ours", () => {
  test("a disk that is full when the accounts are listed makes none of them ours", async () => {
    const sort = `case $(readlink /proc/$$/fd/1) in *before.accounts*) [ ! -e "$ROOT/run/full" ] || exit 2 ;; esac
exec /usr/bin/sort "$@"`;
    const host = having("bash 5.1-1\n", { sort, ...accounts });
    await host.remote.run(raw(": >/run/full"));
    await assert.rejects(converge(host.remote, tool));
    await host.remote.run(raw("rm /run/full"));
    await converge(host.remote, tool);
    await takeBack(host, "A");
    assert.deepEqual(installed(host), ["bash 5.1-1"]);
    assert.deepEqual(accountsTaken(host.calls()), []);
    host.end();
  });
  test("lists that a power cut emptied are dropped", async () => {
    const host = having("bash 5.1-1\n", accounts);
    await converge(host.remote, tool);
    await host.remote.run(raw(`: >${L}/before.packages; : >${L}/before.accounts`));
    assert.deepEqual(await takeBack(host, "A"), [
      "what an install that was cut off brought along is not known, and stays",
    ]);
    assert.deepEqual(installed(host), ["bash 5.1-1"]);
    assert.deepEqual(accountsTaken(host.calls()), []);
    host.end();
  });
  test("packages that cannot be listed stop an install before it begins", async () => {
    const host = having("bash 5.1-1\n", { cut: "" });
    await host.remote.run(raw("rm /usr/local/bin/cut; ln -s /bin/false /usr/local/bin/cut"));
    await assert.rejects(converge(host.remote, tool), /what there is before an install could not be listed/);
    assert.deepEqual(
      host.calls().filter((call) => call.startsWith("dnf")),
      [],
    );
    host.end();
  });
  test("a dnf that was killed while it unpacked is brought to its end, so that its files are known and go", async () => {
    const killed = `case $*-$(ls "$ROOT/run") in *install*-*deadly*) kill -9 $$ ;; esac\n${dnf}`;
    const host = having("bash 5.1-1\n", { dnf: killed });
    await host.remote.run(raw(": >/run/deadly"));
    await assert.rejects(converge(host.remote, tool));
    await host.remote.run(raw("rm /run/deadly"));
    await takeBack(host, "A");
    assert.deepEqual(
      host.calls().filter((call) => /^(dnf|yum)/.test(call)),
      ["dnf -y install tool", "dnf -y install tool", "dnf -y --setopt=clean_requirements_on_remove=False remove tool"],
    );
    assert.deepEqual(installed(host), ["bash 5.1-1"]);
    host.end();
  });
  describe("a destroy that broke off before packages went", () => {
    const stuck = `case $*-$(ls "$ROOT/run") in *remove*-*stuck*) exit 1 ;; esac\n${dnf}`;
    const brokenOff = async () => {
      const host = having("bash 5.1-1\n", { dnf: stuck });
      await converge(host.remote, tool);
      await converge(host.remote, work("B", [file("/etc/b", "b")]));
      await host.remote.run(raw(": >/run/stuck"));
      await assert.rejects(takeBack(host, "A"));
      await host.remote.run(raw("rm /run/stuck"));
      return host;
    };
    test("is ended by the next one", async () => {
      const host = await brokenOff();
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      await takeBack(host, "B");
      assert.ok(!host.has("var/lib/kubexm"));
      host.end();
    });
    test("is forgotten by an up: what others take back later leaves the packages alone", async () => {
      const host = await brokenOff();
      await converge(host.remote, tool);
      await takeBack(host, "B");
      assert.deepEqual(installed(host), ["bash 5.1-1", "tool 1.0-1"]);
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      assert.ok(!host.has("var/lib/kubexm"));
      host.end();
    });
    test("of an older version, which dropped the record: up makes a new one", async () => {
      const host = await brokenOff();
      const key = keyOf("package tool");
      await host.remote.run(raw(`rm -r ${L}/${key}; echo tool >${L}/packages; echo tool >${L}/packages.due`));
      assert.deepEqual(await converge(host.remote, tool), []);
      await takeBack(host, "B");
      assert.deepEqual(installed(host), ["bash 5.1-1", "tool 1.0-1"]);
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      host.end();
    });
  });
  describe("a package that came along with another", () => {
    const bringing = `case $* in *install*tool*) echo 'lib 1.0-1' >>"$ROOT/etc/rpms" ;; esac\n${dnf}`;
    const lib = work("B", [packages(["lib"], { hold: false })]);
    const both = async () => {
      const host = having("bash 5.1-1\n", { dnf: bringing });
      await converge(host.remote, tool);
      assert.deepEqual(await converge(host.remote, lib), []);
      return host;
    };
    test("and is wanted by a second component stays until that goes, too", async () => {
      const host = await both();
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1", "lib 1.0-1"]);
      await takeBack(host, "B");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      host.end();
    });
    test("or goes with the first, when the second went before", async () => {
      const host = await both();
      await takeBack(host, "B");
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      host.end();
    });
    test("and that a second one let go of without taking it back is nobody's", async () => {
      const host = await both();
      await takeBack(host, "B", true);
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1", "lib 1.0-1"]);
      host.end();
    });
    test("and is changed by a second component was not there before", async () => {
      const host = having("bash 5.1-1\n", { dnf: bringing });
      await converge(host.remote, tool);
      await converge(host.remote, work("B", [packages(["lib"], { version: "2.0-1" })]));
      await takeBack(host, "A");
      assert.deepEqual(installed(host), ["bash 5.1-1", "lib 2.0-1"]);
      await takeBack(host, "B");
      assert.deepEqual(installed(host), ["bash 5.1-1"]);
      host.end();
    });
  });
});
