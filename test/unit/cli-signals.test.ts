import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { passSignals } from "../../cli/pulumi.js";

for (const [what, signals, interrupts, first] of [
  ["none", [], 0, undefined],
  ["^C", ["SIGINT"], 1, "SIGINT"],
  ["^C three times", ["SIGINT", "SIGINT", "SIGINT"], 3, "SIGINT"],
  ["SIGTERM, then ^C", ["SIGTERM", "SIGINT"], 2, "SIGTERM"],
  ["a terminal that is gone, told twice", ["SIGHUP", "SIGHUP"], 1, "SIGHUP"],
  ["^C, then a terminal that is gone", ["SIGINT", "SIGHUP"], 1, "SIGINT"],
] as const)
  test(`Pulumi is told of a stop: ${what}`, async () => {
    let count = 0;
    const said: string[] = [];
    const passed = passSignals({ interrupt: () => count++ }, (line) => said.push(line));
    try {
      for (const signal of signals) {
        process.kill(process.pid, signal);
        await sleep(20);
      }
    } finally {
      passed.off();
    }
    assert.deepEqual([count, passed.signal(), said.length], [interrupts, first, Math.min(1, signals.length)]);
  });
