import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { run } from "../../toolchain/process.js";

const repo = join(__dirname, "..", "..", "..");

/** Who imports what in a house of our own, and the rule that says no; none where it is allowed. */
const IMPORTS: readonly (readonly [from: string, to: string, rule?: string])[] = [
  // Upward.
  ["provider/engine.ts", "cli/verb.ts", "engine-does-not-know-components"],
  ["provider/steps/file.ts", "provider/engine.ts", "steps-know-only-shell"],
  ["provider/ssh/link.ts", "provider/steps/file.ts", "ssh-knows-nothing-above"],
  ["resources/chrony.ts", "resources/modules/host.ts", "components-use-steps-only"],
  ["toolchain/go.ts", "lab/hosts.ts", "toolchain-stands-alone"],
  ["lab/plan.ts", "cli/verb.ts", "lab-uses-toolchain-and-artifacts"],
  // Two floors down.
  ["cli/short-cut.ts", "resources/kernel.ts", "verbs-come-in-by-the-doors"],
  ["cli/shorter.ts", "resources/cluster.ts", "verbs-come-in-by-the-doors"],
  ["cli/shortest.ts", "provider/ssh/exec.ts", "verbs-come-in-by-the-doors"],
  ["resources/modules/node.ts", "provider/steps/directory.ts", "clusters-use-components-only"],
  ["resources/swap.ts", "provider/ssh/exec.ts", "components-use-steps-only"],
  ["program.ts", "resources/kernel.ts", "the-program-uses-the-library"],
  ["index.ts", "provider/ssh/exec.ts", "the-library-is-clusters-and-components"],
  ["resources/provider.ts", "provider/ssh/exec.ts", "the-provider-joins-lifecycle-and-components"],
  ["resources/index.ts", "provider/component.ts", "the-list-of-components-holds-components"],
  // Round about, which is told once.
  ["artifacts/a.ts", "artifacts/b.ts", "no-circles"],
  ["artifacts/b.ts", "artifacts/a.ts"],
  // As it should be.
  ["cli/verb.ts", "resources/config/index.ts"],
  ["cli/verb.ts", "resources/config/read.ts"],
  ["cli/other.ts", "toolchain/errors.ts"],
  ["resources/modules/host.ts", "resources/kernel.ts"],
  ["resources/limits.ts", "provider/steps/index.ts"],
];

interface Cruised {
  summary: { violations: { from: string; to: string; rule: { name: string } }[] };
}

test("an import upward or two floors down is noticed, and only such", async () => {
  const dir = mkdtempSync(join(tmpdir(), "kubexm-floors-"));
  try {
    for (const file of [".dependency-cruiser.cjs", "tsconfig.json"]) cpSync(join(repo, file), join(dir, file));
    const body = new Map(IMPORTS.map(([, to]) => [to, "export const x = 1;\n"]));
    const up = (from: string) => "../".repeat(from.split("/").length - 1) || "./";
    for (const [from, to] of IMPORTS)
      body.set(from, `${body.get(from) ?? ""}import "${up(from)}${to.replace(/\.ts$/, ".js")}";\n`);
    for (const [file, text] of body) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), text);
    }
    const depcruise = join(repo, "node_modules", "dependency-cruiser", "bin", "dependency-cruise.mjs");
    const folders = ["cli", "provider", "resources", "artifacts", "lab", "toolchain", "index.ts", "program.ts"];
    const { stdout } = await run(
      process.execPath,
      [depcruise, "--config", ".dependency-cruiser.cjs", "--output-type", "json", ...folders],
      { cwd: dir },
    );
    const { violations } = (JSON.parse(stdout) as Cruised).summary;
    assert.deepEqual(
      violations.map(({ from, to, rule }) => `${from} → ${to}: ${rule.name}`).sort(),
      IMPORTS.flatMap(([from, to, rule]) => (rule === undefined ? [] : [`${from} → ${to}: ${rule}`])).sort(),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
