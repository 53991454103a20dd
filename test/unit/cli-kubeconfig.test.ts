import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeKubeconfig } from "../../cli/kubeconfig.js";

test("a kubeconfig is its owner's alone, also where a wider file was there", () => {
  const dir = mkdtempSync(join(tmpdir(), "kubexm-kubeconfig-"));
  try {
    writeFileSync(join(dir, "kubeconfig"), "old", { mode: 0o644 });
    for (const text of ["new", "newer"]) {
      const path = writeKubeconfig({ dir }, text);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.equal(readFileSync(path, "utf8"), text);
    }
    assert.deepEqual(readdirSync(dir), ["kubeconfig"]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
