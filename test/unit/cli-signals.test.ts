import assert from "node:assert/strict";
import { once } from "node:events";
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
    // To wait for a signal does not keep a process alive.
    const alive = setInterval(() => undefined, 1_000);
    const passed = passSignals({ interrupt: () => count++ }, (line) => said.push(line));
    try {
      for (const signal of signals) {
        // Two that come before the first is heard are one.
        const heard = once(process, signal);
        process.kill(process.pid, signal);
        await heard;
      }
    } finally {
      passed.off();
      clearInterval(alive);
    }
    assert.deepEqual([count, passed.signal(), said.length], [interrupts, first, Math.min(1, signals.length)]);
  });
