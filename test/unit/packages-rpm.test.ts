import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { revert } from "../../provider/engine";
import { packages } from "../../provider/steps";
import { fakeHost } from "../harness/fake-host";
import { context, converge, differing, raw, walk, work } from "../harness/step-cases";

/** etc/rpms has a line for each package: name, version, and what it cannot be without. */
const rpm = `
form= names= test=
while [ $# -gt 0 ]; do
  case $1 in --qf) form=$2 && shift ;; --test) test=yes ;; --whatprovides) exit 1 ;; -qa) names=$(cut -d' ' -f1 "$ROOT/etc/rpms") ;; -*) ;; *) names="$names $1" ;; esac
  shift
done
if [ -n "$test" ]; then
  while read -r name version needs; do
    [ -n "$needs" ] || continue
    case " $names " in *" $needs "*) case " $names " in *" $name "*) ;; *) printf '\\t%s is needed by (installed) %s-%s.x86_64\\n' "$needs" "$name" "$version" >&2 ;; esac ;; esac
  done <"$ROOT/etc/rpms"
  exit 1
fi
missing=0
for name in $names; do
  name=\${name%%-[0-9]*.x86_64}
  line=$(grep "^$name " "$ROOT/etc/rpms") || { missing=$((missing + 1)); echo "package $name is not installed"; continue; }
  version=$(echo "$line" | cut -d' ' -f2)
  printf "$(printf '%s' "$form" | sed "s/%{NAME}/$name/; s/%{VERSION}/\${version%-*}/; s/%{RELEASE}/\${version#*-}/")"
done
exit $missing`;

/** Has every version but 0.9-1; of what is asked for without one, 1.0-1. */
const dnf = `
drop() { grep -v "^$1 " "$ROOT/etc/rpms" >"$ROOT/new"; mv "$ROOT/new" "$ROOT/etc/rpms"; }
verb=
for word; do
  case $verb-$word in
    -install | -remove | -versionlock) verb=$word ;;
    versionlock-add | versionlock-delete) verb=$word ;;
    *--* | *--*=* | *-y | *-q) ;;
    install-*-0.9-1) exit 1 ;;
    install-*-[0-9]*) name=\${word%-*-*} && drop "$name" && echo "$name \${word#"$name"-}" >>"$ROOT/etc/rpms" ;;
    install-*) echo "$word 1.0-1" >>"$ROOT/etc/rpms" ;;
    remove-*) drop "$word" ;;
    add-*) mkdir -p "$ROOT/etc/dnf/plugins"; echo "$word-0:1.0-1.*" >>"$ROOT/etc/dnf/plugins/versionlock.list" ;;
    delete-*) sed -i "/^$word-/d" "$ROOT/etc/dnf/plugins/versionlock.list" ;;
  esac
done`;

const files = (rpms: string) => ({ "etc/rpms": rpms, "etc/passwd": "", "etc/group": "" });
const having = (rpms: string, more: Readonly<Record<string, string>> = {}) =>
  fakeHost(files(rpms), { rpm, dnf, yum: "exit 1", ...more });
const sorted = (text: string) => text.trim().split("\n").sort();

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
  describe("an install that fails after it brought something", () => {
    const failing = `case $*-$(ls "$ROOT/run") in *install*-*broken*) echo 'dep 1.0-1' >>"$ROOT/etc/rpms"; exit 1 ;; esac\n${dnf}`;
    const getent = 'grep "^$2:" "$ROOT/etc/$1"';
    const wanted = work("A", [packages(["tool"])]);
    const begun = async () => {
      const host = having("bash 5.1-1\n", { dnf: failing, getent, userdel: ":" });
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
      assert.ok(!host.calls().some((call) => call.startsWith("userdel")));
      host.end();
    });
  });
});
