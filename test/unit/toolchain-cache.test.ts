import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { cacheDir, needDisk, once, scratch } from "../../toolchain/cache.js";
import { owner } from "../../toolchain/owner.js";
import { run } from "../../toolchain/process.js";

const compiled = join(__dirname, "..", "..", "toolchain", "cache.js");
const saved = { ...process.env };
let cache = "";

before(async () => {
  cache = await mkdtemp(join(tmpdir(), "kubexm-cache-"));
  process.env["KUBEXM_CACHE"] = cache;
});

after(async () => {
  process.env = saved;
  await rm(cache, { recursive: true, force: true });
});

/** A process that makes `key` slowly, and notes in `log` that it did. */
const maker = (key: string, log: string) => `
  const { appendFileSync, writeFileSync } = require("node:fs");
  require(${JSON.stringify(compiled)}).once(${JSON.stringify(key)}, async (dir) => {
    appendFileSync(${JSON.stringify(log)}, process.pid + "\\n");
    console.log("making");
    await new Promise((wake) => setTimeout(wake, 300));
    writeFileSync(dir + "/made", String(process.pid));
  }).then((path) => console.log(path));`;

test("the folder comes from KUBEXM_CACHE, then XDG_CACHE_HOME, then the home folder", () => {
  const cases: { env: Record<string, string>; want: string }[] = [
    { env: { KUBEXM_CACHE: "/a", XDG_CACHE_HOME: "/b" }, want: "/a" },
    { env: { XDG_CACHE_HOME: "/b" }, want: "/b/kubexm" },
    { env: { KUBEXM_CACHE: "", XDG_CACHE_HOME: "" }, want: join(homedir(), ".cache", "kubexm") },
  ];
  const before = process.env;
  try {
    for (const { env, want } of cases) {
      process.env = env;
      assert.equal(cacheDir(), want);
    }
  } finally {
    process.env = before;
  }
});

test("of several processes at once one makes, and all get the same folder", async () => {
  const log = join(cache, "several.log");
  const runs = await Promise.all([1, 2, 3].map(() => run(process.execPath, ["-e", maker("several/1.0", log)])));
  assert.equal((await readFile(log, "utf8")).trim().split("\n").length, 1);
  for (const { stdout } of runs) assert.equal(stdout.trim().split("\n").at(-1), join(cache, "several", "1.0"));
  assert.deepEqual(await readdir(join(cache, "several")), ["1.0"]);
});

test("what a killed process began is removed and made anew", async () => {
  const log = join(cache, "killed.log");
  const child = spawn(process.execPath, ["-e", maker("killed/1.0", log)], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("close", resolve));
  assert.equal((await readdir(join(cache, "killed"))).length, 1);
  const path = await once("killed/1.0", (dir) => writeFile(join(dir, "made"), "again"));
  assert.equal(await readFile(join(path, "made"), "utf8"), "again");
  assert.deepEqual(await readdir(join(cache, "killed")), ["1.0"]);
});

const [pid, start, boot] = owner().split("-");
for (const [who, claim] of [
  ["a number that another process has now", `${pid}-1-${boot}`],
  ["a process from before the last start of the machine", `${pid}-${start}-00000000`],
] as const)
  test(`the claim of ${who} does not count`, async () => {
    await mkdir(join(cache, "dead", `1.0.tmp-${claim}-00`), { recursive: true });
    await once("dead/1.0", () => Promise.resolve());
    assert.deepEqual(await readdir(join(cache, "dead")), ["1.0"]);
    await rm(join(cache, "dead"), { recursive: true });
  });

test("a failed make leaves nothing, and the next call tries again", async () => {
  await assert.rejects(
    once("failing", () => Promise.reject(new Error("no luck"))),
    /no luck/,
  );
  assert.equal(await once("failing", (dir) => writeFile(join(dir, "made"), "")), join(cache, "failing"));
  assert.deepEqual(
    (await readdir(cache)).filter((name) => name.startsWith("failing")),
    ["failing"],
  );
});

test("in one process the work is shared, and later calls do not make", async () => {
  let made = 0;
  const make = () => {
    made++;
    return Promise.resolve();
  };
  const both = await Promise.all([once("shared", make), once("shared", make)]);
  assert.deepEqual(new Set(both), new Set([await once("shared", make)]));
  assert.equal(made, 1);
});

test("a scratch folder ends with its use, also when that fails", async () => {
  const seen: string[] = [];
  const use = (dir: string) => {
    seen.push(dir);
    return Promise.reject(new Error("in use"));
  };
  await assert.rejects(scratch("work", use), /in use/);
  assert.equal(seen.length, 1);
  assert.deepEqual(await readdir(join(cache, "tmp")), []);
});

test("too little disk is told with what needs it and where, also for a folder that is not there yet", async () => {
  const folder = join(cache, "not", "there");
  await needDisk(folder, 1, "A little");
  await assert.rejects(needDisk(folder, 2 ** 60, "Building all"), (error: Error) => {
    assert.match(error.message, /^Building all needs 1073741824\.0 GiB free in .*not\/there/);
    return error.name === "UserError";
  });
});
