import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";

const entry = join(__dirname, "..", "..", "cli", "main.js");

for (const [argv, code, stdout, stderr] of [
  [["--version"], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
  [["--help"], 0, /usage: kubexm VERB[^]*preview[^]*up[^]*refresh[^]*destroy[^]*lab/, /^$/],
  [[], 2, /usage: kubexm VERB/, /^$/],
  [["up", "--help"], 0, /-f, --file VALUE[^]*--parallel N/, /^$/],
  [["rise"], 2, /^$/, /^kubexm: unknown verb "rise"; verbs are preview, up, refresh, destroy, .*lab\n$/],
  [["up", "--quickly"], 2, /^$/, /^kubexm up: .*--quickly.*\n$/],
  // 2 means drift.
  [["drift", "--typo"], 1, /^$/, /^kubexm drift: .*--typo.*; flags are .*\n$/],
  [["preflight", "--typo"], 2, /^$/, /^kubexm preflight: .*--typo.*\n$/],
  [["up", "-f", "/no/such.yaml"], 1, /^$/, /^.*\/no\/such\.yaml.*\n$/],
] as const)
  test(`kubexm ${argv.join(" ")}: exit code ${code}`, () => {
    const done = spawnSync(process.execPath, [entry, ...argv], { encoding: "utf8" });
    assert.match(done.stdout, stdout);
    assert.match(done.stderr, stderr);
    assert.equal(done.status, code);
  });

const folder = mkdtempSync(join(tmpdir(), "kubexm-main-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "cluster.yaml"), "metadata: { name: prod }\n");

for (const [what, file] of [
  ["has problems", "cluster.yaml"],
  ["is not there", "none.yaml"],
] as const)
  test(`kubexm preflight --json tells as JSON that the file ${what}, as validate does`, () => {
    const path = join(folder, file);
    const of = (verb: string) => spawnSync(process.execPath, [entry, verb, "--json", "-f", path], { encoding: "utf8" });
    const { status, stdout, stderr } = of("preflight");
    assert.deepEqual([status, stderr], [2, ""]);
    assert.equal(stdout, of("validate").stdout);
    const { ok, problems, unreadable } = JSON.parse(stdout) as Told;
    assert.equal(ok, false);
    if (file === "none.yaml") assert.match(unreadable ?? "", /there is no such file/);
    else assert.ok((problems ?? []).length > 0 && problems?.every(({ line }) => typeof line === "number"));
  });

interface Told {
  ok: boolean;
  problems?: { line?: number; message: string }[];
  unreadable?: string;
}

/** A Pulumi CLI that tells its version, and for the rest runs what a test says. */
function pulumi(says: string): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  for (const name of ["pulumi", "pulumi-language-nodejs", "pulumi-resource-pulumi-nodejs"]) {
    writeFileSync(join(bin, name), `#!/bin/sh\n[ "$1" != version ] || { echo v3.259.0; exit 0; }\n${says}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return [bin, process.env["PATH"]].join(delimiter);
}

for (const [what, verb, says, told] of [
  [
    "before the first up",
    "drift",
    "echo \"error: no stack named 'prod' found\" >&2; exit 6",
    /^there is no state .* run kubexm up -f cluster\.yaml first\n$/,
  ],
  [
    "before the first up",
    "kubeconfig",
    "echo \"error: no stack named 'prod' found\" >&2; exit 6",
    /^there is no state .* run kubexm up -f cluster\.yaml first\n$/,
  ],
  ["after no more than a preview", "drift", "echo '{\"deployment\":{}}'", /^there is no state of "prod" yet: .*\n$/],
  [
    "with a wrong passphrase",
    "drift",
    "echo 'error: incorrect passphrase' >&2; exit 1",
    /^the state is encrypted with another passphrase: .*correct PULUMI_CONFIG_PASSPHRASE\n$/,
  ],
  ["with a backend that refuses", "config", "echo 'error: access denied' >&2; exit 1", /^access denied\n$/],
] as const)
  test(`kubexm ${verb} ${what}: one line, and no stack of the program`, () => {
    const env = { ...process.env, PATH: pulumi(says) };
    const done = spawnSync(process.execPath, [entry, verb], { encoding: "utf8", cwd: folder, env });
    assert.deepEqual([done.stdout, done.status], ["", 1]);
    assert.match(done.stderr, told);
  });

test("kubexm destroy without a terminal and without --yes: refused in one line, before anything", () => {
  const cwd = mkdtempSync(join(folder, "destroy-"));
  writeFileSync(join(cwd, "cluster.yaml"), "metadata: { name: prod }\n");
  const done = spawnSync(process.execPath, [entry, "destroy"], { encoding: "utf8", cwd });
  assert.deepEqual([done.stdout, done.status], ["", 1]);
  assert.match(done.stderr, /^destroy takes "prod" off all its hosts, and there is no terminal .*: add --yes .*\n$/);
  assert.equal(existsSync(join(cwd, ".kubexm")), false);
});
