import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const entry = join(__dirname, "..", "..", "cli", "main.js");

for (const [argv, code, stdout, stderr] of [
  [["--version"], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
  [["--help"], 0, /usage: kubexm VERB[^]*preview[^]*up[^]*refresh[^]*destroy[^]*lab/, /^$/],
  [[], 2, /usage: kubexm VERB/, /^$/],
  [["up", "--help"], 0, /-f, --file VALUE[^]*--parallel N/, /^$/],
  [["rise"], 2, /^$/, /^kubexm: unknown verb "rise"; verbs are preview, up, refresh, destroy, .*lab\n$/],
  [["up", "--quickly"], 2, /^$/, /^kubexm up: .*--quickly.*\n$/],
  [["up", "-f", "/no/such.yaml"], 1, /^$/, /^.*\/no\/such\.yaml.*\n$/],
] as const)
  test(`kubexm ${argv.join(" ")}: exit code ${code}`, () => {
    const done = spawnSync(process.execPath, [entry, ...argv], { encoding: "utf8" });
    assert.match(done.stdout, stdout);
    assert.match(done.stderr, stderr);
    assert.equal(done.status, code);
  });
