import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { world } from "../../provider/dynamic.js";
import { Chrony } from "../../resources/chrony.js";

const provider = join(__dirname, "..", "..", "resources", "provider.js");

/** The packages that a fresh process has loaded when it has everything a resource needs. */
function packagesOf(script: string): string[] {
  const told = `${script}; console.log(JSON.stringify(Object.keys(require.cache)))`;
  const files = JSON.parse(execFileSync(process.execPath, ["-e", told, provider], { encoding: "utf8" })) as string[];
  const names = files.map((file) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? "kubexm");
  return [...new Set(names)];
}

test("the provider process does without Pulumi's SDK, templates and diffs until it needs them", () => {
  const loaded = packagesOf("require(process.argv[1]).forKind('Chrony')");
  for (const name of ["kubexm", "ssh2", "zod"]) assert.ok(loaded.includes(name), `${name} is loaded`);
  for (const name of ["@pulumi/pulumi", "@grpc/grpc-js", "handlebars", "diff"])
    assert.ok(!loaded.includes(name), `${name} is loaded`);
});

test("a provider whose engine was killed ends by itself", async () => {
  const engine = createServer().listen(0, "127.0.0.1");
  await once(engine, "listening");
  const { port } = engine.address() as AddressInfo;
  const script = "require(process.argv[1]); setInterval(() => {}, 1000)";
  const child = spawn(process.execPath, ["-e", script, provider, `127.0.0.1:${port}`], { stdio: "ignore" });
  try {
    const [socket] = (await once(engine, "connection")) as [Socket];
    assert.equal(child.exitCode, null);
    socket.destroy();
    engine.close();
    assert.deepEqual(await once(child, "exit", { signal: AbortSignal.timeout(60_000) }), [0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("all kinds of one process are one run to a host, so that its looks do not wait for its own changes", async () => {
  const { controller } = world();
  await sleep(2);
  assert.equal(world().controller, controller);
});

test("a component's class can be extended, and what it makes is known as its own", () => {
  class Mine extends Chrony {
    readonly extra = 1;
  }
  assert.ok(Mine.prototype instanceof Chrony);
  assert.equal(Mine.definition, Chrony.definition);
  assert.equal(Chrony.definition.kind, "Chrony");
});

test("Pulumi's SDK does without its compiler and npm, zod without its languages, and both have them when it is asked for what needs them", () => {
  const light = JSON.stringify(join(__dirname, "..", "..", "cli", "light-sdk.js"));
  const sdk = `require(${light}); const { runtime } = require("@pulumi/pulumi")`;
  const heavy = ["typescript", "@npmcli/arborist"];
  const provider = packagesOf(`require(${light}); require(process.argv[1]).forKind('Chrony')`);
  assert.ok(provider.includes("zod") && !provider.includes("yaml"), "yaml is loaded");
  const messages = `require(${light}); const { z } = require("zod"); console.log(typeof z.locales.fr === "function")`;
  assert.equal(execFileSync(process.execPath, ["-e", messages], { encoding: "utf8" }).trim(), "true");
  const loaded = packagesOf(sdk);
  assert.ok(loaded.includes("@pulumi/pulumi"));
  for (const name of heavy) assert.ok(!loaded.includes(name), `${name} is loaded`);
  const asked = `${sdk}; runtime.serializeFunction(() => () => 42).then(({ text }) => console.log(text.includes("42")))`;
  assert.equal(execFileSync(process.execPath, ["-e", asked], { encoding: "utf8" }).trim(), "true");
});

test("lines for --debug go nowhere, others to the engine, and schemas are asked as they are", () => {
  const light = JSON.stringify(join(__dirname, "..", "..", "cli", "light-sdk.js"));
  const asked = `require("@pulumi/pulumi/runtime/settings").excessiveDebugOutput = true; require(process.argv[1]);
const { log } = require("@pulumi/pulumi"); log.debug("one"); log.info("two"); console.log(require("zod").z.config().jitless)`;
  const told = (before: string) =>
    execFileSync(process.execPath, ["-e", before + asked, provider], { encoding: "utf8" })
      .trim()
      .split("\n");
  assert.deepEqual(told(`require(${light}); `), ["info: [runtime] two", "true"]);
  assert.deepEqual(told(""), ["debug: [runtime] one", "info: [runtime] two", "undefined"]);
});

test("where a promise of the program comes from is written down for whoever debugs promises, and costs nobody else", () => {
  const light = JSON.stringify(join(__dirname, "..", "..", "cli", "light-sdk.js"));
  const asked = `require(${light}); require("@pulumi/pulumi");
const { debuggablePromise } = require("@pulumi/pulumi/runtime/debuggable");
const promise = Promise.resolve(42);
debuggablePromise(promise, "here").then((value) => console.log(value, promise._debugCtx, / at /.test(promise._debugStackTrace), Error.stackTraceLimit))`;
  const told = (env: NodeJS.ProcessEnv) =>
    execFileSync(process.execPath, ["-e", asked], { encoding: "utf8", env: { ...process.env, ...env } }).trim();
  assert.equal(told({}), "42 here false 10");
  assert.equal(told({ PULUMI_DEBUG_PROMISE_LEAKS: "1" }), "42 here true 10");
});
