import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const bin = join(__dirname, "..", "..", "..", "bin", "kubexm.js");
const dir = mkdtempSync(join(tmpdir(), "kubexm-node-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** The command, by a Node that says it is another one. */
function kubexm(version: string) {
  const disguise = join(dir, `${version}.js`);
  const versions = { ...process.versions, node: version };
  writeFileSync(
    disguise,
    `Object.defineProperty(process, "versions", { value: ${JSON.stringify(versions)}, configurable: true });`,
  );
  return spawnSync(process.execPath, ["--require", disguise, bin, "--version"], { encoding: "utf8" });
}

for (const version of ["4.9.1", "18.20.4", "20.18.3"])
  test(`kubexm by Node.js ${version}: one line that says what is needed`, () => {
    const { status, stdout, stderr } = kubexm(version);
    assert.deepEqual([status, stdout], [1, ""]);
    assert.equal(
      stderr,
      `kubexm needs Node.js 20.19 or newer, this is ${version}: install it from https://nodejs.org/ or your package manager\n`,
    );
  });

for (const version of ["20.19.0", "22.1.0"])
  test(`kubexm by Node.js ${version}: runs`, () => {
    const { status, stdout } = kubexm(version);
    assert.equal(status, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });
