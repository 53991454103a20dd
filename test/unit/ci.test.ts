import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";

interface Step {
  uses?: string;
  run?: string;
  if?: string;
}

test("the cache that a run as root leaves is given to the user who saves it, also after a failure", () => {
  const text = readFileSync(join(__dirname, "..", "..", "..", ".github", "workflows", "ci.yml"), "utf8");
  const { jobs } = parse(text) as { jobs: Record<string, { steps: Step[] }> };
  for (const { steps } of Object.values(jobs)) {
    const asRoot = steps.findIndex(({ run }) => run?.includes(".ci/run"));
    const after = steps.slice(asRoot + 1).find(({ run }) => /chown .*"\$KUBEXM_CACHE"/.test(run ?? ""));
    assert.equal(after?.if, "always()");
  }
});
