import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runLog } from "../../provider/log";

const folder = mkdtempSync(join(tmpdir(), "kubexm-run-log-"));
after(() => rmSync(folder, { recursive: true }));

const entry = { host: "m1", component: "Box b", step: "file", changed: true, ms: 1 };

test("the run log of a process is one open file, however many resources write to it", () => {
  const file = join(folder, "logs", "run.jsonl");
  const open = () => readdirSync("/proc/self/fd").length;
  const before = open();
  for (let i = 0; i < 50; i++) runLog(file)(entry);
  assert.equal(open(), before + 1);
  assert.equal(readFileSync(file, "utf8").trimEnd().split("\n").length, 50);
});

test("no log is made where none is asked for, or nothing is written", () => {
  runLog("")(entry);
  runLog(join(folder, "none", "run.jsonl"));
  assert.deepEqual(readdirSync(folder), ["logs"]);
});
