import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inTurn, installScript, lastWords } from "../../lab/apt.js";
import { run } from "../../toolchain/process.js";

const root = mkdtempSync(join(tmpdir(), "kubexm-apt-"));
after(() => rmSync(root, { recursive: true, force: true }));

const LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)";

/** Installs with an apt-get that does what a test says; it sees how often it was called as $n. */
async function install(says: string, patience = 60) {
  const dir = mkdtempSync(join(root, "bin-"));
  const calls = join(dir, "calls");
  const policy = join(dir, "policy-rc.d");
  writeFileSync(
    join(dir, "apt-get"),
    `#!/bin/sh\n[ -x ${policy} ] && echo "$*" >>${calls}\nn=$(wc -l <${calls})\n${says}\n`,
  );
  chmodSync(join(dir, "apt-get"), 0o755);
  const env = { PATH: [dir, process.env["PATH"]].join(delimiter) };
  const done = await run("sh", ["-c", installScript({ policy, patience }), "sh", "one", "two"], { env }).then(
    () => "installed",
    lastWords,
  );
  return { done, calls: readFileSync(calls, "utf8").trimEnd().split("\n"), left: existsSync(policy) };
}

test("apt is asked to wait for its lock, no service is started, and the policy for that goes again", async () => {
  const { done, calls, left } = await install("true");
  assert.deepEqual([done, left], ["installed", false]);
  assert.deepEqual(calls, ["update -qq", "install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=60 one two"]);
});

test("the lock on package lists, for which apt itself does not wait, is waited for", async () => {
  const { done, calls } = await install(`[ $n -ne 1 ] || { echo "${LOCKED}" >&2; exit 100; }`);
  assert.equal(done, "installed");
  assert.deepEqual(
    calls.map((call) => call.split(" ")[0]),
    ["update", "update", "install"],
  );
});

for (const [what, says, words] of [
  ["a lock that is never let go", `echo "${LOCKED}" >&2; exit 100`, LOCKED],
  [
    "no such package",
    `[ $1 = update ] || { echo "Reading lists"; echo "E: Unable to locate package one" >&2; exit 100; }`,
    "E: Unable to locate package one",
  ],
  [
    "an archive that does not answer",
    "echo 'W: odd'; echo 'E: Failed to fetch http://x' >&2; exit 100",
    "E: Failed to fetch http://x",
  ],
] as const)
  test(`apt's last words are told: ${what}`, async () => {
    const { done, left } = await install(says, 2);
    assert.deepEqual([done, left], [words, false]);
  });

test("of two that want packages at once the second waits, and asks only for what is then still missing", async () => {
  const there = new Set<string>();
  const asked: string[][] = [];
  let inside = 0;
  const want = (...names: readonly string[]) =>
    inTurn(
      () => Promise.resolve(names.filter((name) => !there.has(name))),
      async (packages) => {
        assert.equal(++inside, 1);
        asked.push([...packages]);
        await sleep(20);
        for (const name of packages) there.add(name);
        inside--;
      },
      "apt-unit-test",
    );
  await Promise.all([want("one", "two"), want("two", "three"), want("one")]);
  assert.deepEqual(asked.flat().sort(), ["one", "three", "two"]);
});
