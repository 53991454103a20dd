import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { logTo } from "../../cli/pulumi.js";

const exit = join(__dirname, "..", "..", "cli", "exit.js");
const dir = mkdtempSync(join(tmpdir(), "kubexm-exit-"));
after(() => rmSync(dir, { recursive: true }));

for (const [what, redirect, skip] of [
  ["has gone", "2>&1 | true", false],
  ["has a full disk", "> /dev/full 2>&1", !existsSync("/dev/full")],
] as const)
  test(`a command goes on to its end when its reader ${what}`, { skip }, () => {
    const done = join(dir, what);
    const script = `
      require(${JSON.stringify(exit)}).outliveReaders();
      let lines = 0;
      const timer = setInterval(() => {
        console.log("x".repeat(1000));
        console.error("y");
        if (++lines < 20) return;
        clearInterval(timer);
        require("node:fs").writeFileSync(${JSON.stringify(done)}, "");
      }, 10);`;
    spawnSync("sh", ["-c", `"$0" -e "$1" ${redirect}`, process.execPath, script]);
    // The pipe's end may come before that of the command.
    const until = Date.now() + 10_000;
    while (!existsSync(done) && Date.now() < until) spawnSync("sleep", ["0.1"]);
    assert.ok(existsSync(done));
  });

for (const verb of ["preview", "config", "fetch", "kubeconfig"])
  test(`kubexm ${verb} where no folder can be made: one line that names it, and no stack of the program`, () => {
    const cwd = join(dir, verb);
    mkdirSync(cwd);
    const host = "{ name: m1, address: 192.0.2.1, user: root, password: x }";
    const groups = "{ master: [m1], etcd: [m1], worker: [m1] }";
    const head = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: { name: prod }\n";
    const spec = `spec: { hosts: [${host}], roleGroups: ${groups}, kubernetes: { version: v1.35.4 } }\n`;
    writeFileSync(join(cwd, "cluster.yaml"), head + spec);
    writeFileSync(join(cwd, ".kubexm"), "");
    const main = join(__dirname, "..", "..", "cli", "main.js");
    const done = spawnSync(process.execPath, [main, verb], { encoding: "utf8", cwd });
    assert.match(done.stderr, /^ENOTDIR: not a directory, mkdir '.*\.kubexm\/prod'\n$/);
    assert.equal(done.status, 1);
  });

test("a log that cannot be written is told once", () => {
  const said: string[] = [];
  const log = logTo(join(dir, "none", "x.jsonl"), (line) => said.push(line));
  log({ a: 1 });
  log({ b: 2 });
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^the log cannot be written: ENOENT/);
});

test("a log has a line for each entry", () => {
  const path = join(dir, "x.jsonl");
  const log = logTo(path, (line) => assert.fail(line));
  log({ a: 1 });
  log({ b: 2 });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => Object.keys(JSON.parse(line) as object)),
    [
      ["time", "a"],
      ["time", "b"],
    ],
  );
});
