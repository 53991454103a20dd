import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { once } from "node:events";
import { after, beforeEach, test } from "node:test";
import { claim } from "../../cli/claim.js";
import { NODE_OPTIONS, homeOf, prepare } from "../../cli/home.js";
import { settlePending } from "../../cli/pending.js";
import { isKnown, mayBePending, stateFile } from "../../cli/state-file.js";
import { RUN_MARK, clearDeadLocks, dropHalfNotes, endStrays } from "../../cli/stale.js";

const root = mkdtempSync(join(tmpdir(), "kubexm-cli-"));
let dir = root;
let number = 0;

beforeEach(() => {
  dir = join(root, String(number++));
  mkdirSync(dir);
});
after(() => rmSync(root, { recursive: true, force: true }));

/** The number of a process that is gone. */
async function deadPid(): Promise<number> {
  const child = spawn("true");
  await once(child, "exit");
  return child.pid ?? 0;
}

test("one claim at a time; the second is told who has it; it is free again afterwards", async () => {
  const release = await claim(dir, "up");
  await assert.rejects(claim(dir, "destroy"), new RegExp(`kubexm up, process ${process.pid}, since`));
  release();
  (await claim(dir, "destroy"))();
  assert.deepEqual(readdirSync(dir), []);
});

test("notes that a kill left half written go, whole ones and the state itself stay", () => {
  const stacks = join(dir, ".pulumi", "stacks", "kubexm");
  mkdirSync(stacks, { recursive: true });
  const files = { "a.json": "{", "a.json.attrs": "", "b.json.attrs": '{"user.cach', "c.json.attrs": '{"md5":"x"}' };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(stacks, name), text);
  dropHalfNotes(dir);
  assert.deepEqual(readdirSync(stacks), ["a.json", "c.json.attrs"]);
  dropHalfNotes(join(dir, "nowhere"));
});

test("of many at once exactly one gets the claim", async () => {
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => claim(dir, "up")));
  assert.ok(all.filter(({ status }) => status === "fulfilled").length <= 1);
});

test("the claim of a dead process, or of one whose number was used again, holds nobody", async () => {
  const owners = [
    { pid: await deadPid(), start: "" },
    { pid: process.pid, start: "another time" },
  ];
  for (const [i, owner] of owners.entries())
    writeFileSync(join(dir, `running-${i}`), JSON.stringify({ ...owner, verb: "up", since: "then" }));
  (await claim(dir, "up"))();
  assert.deepEqual(readdirSync(dir), []);
});

const STACK = "organization/kubexm/s";

function lock(owner: { pid: number; hostname?: string }): string {
  const folder = join(dir, ".pulumi", "locks", STACK);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "1.json");
  writeFileSync(path, JSON.stringify({ username: "u", hostname: hostname(), timestamp: "then", ...owner }));
  writeFileSync(`${path}.attrs`, "{}");
  return folder;
}

test("a lock of a dead process is removed and told", async () => {
  const pid = await deadPid();
  const folder = lock({ pid });
  assert.deepEqual(clearDeadLocks(dir, STACK), [`removed the lock of a run that was killed (process ${pid}, then)`]);
  assert.deepEqual(readdirSync(folder), []);
});

test("a number that another program has now holds no lock", { skip: !existsSync("/proc/self/exe") }, () => {
  const folder = lock({ pid: process.pid });
  assert.equal(clearDeadLocks(dir, STACK).length, 1);
  assert.deepEqual(readdirSync(folder), []);
});

test("a lock of another machine stays, and its owner is named", () => {
  const folder = lock({ pid: 1, hostname: "elsewhere" });
  assert.throws(
    () => clearDeadLocks(dir, STACK),
    /locked by u@elsewhere, process 1, since then; if that run is dead, remove /,
  );
  assert.deepEqual(readdirSync(folder).sort(), ["1.json", "1.json.attrs"]);
});

for (const [what, name, text] of [
  ["empty", "2.json", ""],
  ["half there", "2.json", '{"pid":1'],
  ["no lock at all", "2.json", "null"],
  ["not yet renamed", "2.json.18a.tmp", ""],
] as const)
  test(`a lock that a kill or a full disk left stops nobody: ${what}`, () => {
    const folder = join(dir, ".pulumi", "locks", STACK);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), text);
    assert.deepEqual(clearDeadLocks(dir, STACK), [
      "removed a lock that a killed run, or a full disk, left half written",
    ]);
    assert.deepEqual(readdirSync(folder), []);
  });

test("a lock that another machine was about to rename is its own", () => {
  const folder = lock({ pid: 1, hostname: "elsewhere" });
  renameSync(join(folder, "1.json"), join(folder, "1.json.18a.tmp"));
  assert.throws(() => clearDeadLocks(dir, STACK), /locked by u@elsewhere/);
});

test("no lock, nothing to say", () => {
  assert.deepEqual(clearDeadLocks(dir, STACK), []);
});

test("what a killed run left running is ended, nothing else", { skip: !existsSync("/proc/self/environ") }, async () => {
  const start = (mark: string) =>
    spawn("sleep", ["60"], { env: { ...process.env, [RUN_MARK]: mark }, stdio: "ignore" });
  const [mine, other] = [start(dir), start(`${dir}x`)];
  await Promise.all([once(mine, "spawn"), once(other, "spawn")]);
  const said: string[] = [];
  const ended = once(mine, "exit");
  await endStrays(dir, (line) => said.push(line));
  assert.deepEqual(await ended, [null, "SIGKILL"]);
  assert.equal(other.exitCode ?? other.signalCode, null);
  assert.deepEqual(said, [`ending what a killed run left: processes ${mine.pid}`]);
  other.kill("SIGKILL");
});

const urn = (name: string) => `urn:pulumi:s::kubexm::kubexm:index:Cluster$pulumi-nodejs:dynamic/kubexm:Chrony::${name}`;
const type = "pulumi-nodejs:dynamic/kubexm:Chrony";
const inputs = { host: { name: "m1" }, resource: { name: "c" }, __provider: "text" };

test("a begun create becomes a half-made resource that the provider can update and delete", () => {
  const settled = settlePending({
    version: 3,
    deployment: {
      manifest: {},
      resources: [{ urn: "a", type, id: "1" }],
      pending_operations: [{ resource: { urn: urn("c"), type, inputs }, type: "creating" }],
    },
  });
  assert.deepEqual(settled, {
    version: 3,
    deployment: {
      manifest: {},
      resources: [
        { urn: "a", type, id: "1" },
        {
          urn: urn("c"),
          type,
          inputs,
          id: "m1/Chrony/c",
          outputs: { ...inputs, incomplete: true },
          initErrors: ["interrupted while creating"],
        },
      ],
    },
  });
});

test("the stack, a group of resources and a provider are on no host: the engine makes them again", () => {
  const state = ["pulumi:pulumi:Stack", "kubexm:index:Cluster", "pulumi:providers:pulumi-nodejs"].map((type) => ({
    urn: `urn:pulumi:s::kubexm::${type}::one`,
    type,
  }));
  const [stack, ...others] = state;
  const operations = state.map((resource) => ({ resource, type: "creating" }));
  const { deployment } = settlePending({
    deployment: { resources: stack ? [stack] : [], pending_operations: operations },
  });
  assert.equal(others.length, 2);
  assert.deepEqual(deployment, { resources: [stack] });
});

for (const doing of ["updating", "deleting", "creating"])
  test(`a known resource that was ${doing} is done again, and there is no second one`, () => {
    const { deployment } = settlePending({
      deployment: {
        resources: [{ urn: urn("c"), type, id: "1", outputs: { a: 1 } }],
        pending_operations: [{ resource: { urn: urn("c"), type }, type: doing }],
      },
    });
    assert.deepEqual(deployment, {
      resources: [
        {
          urn: urn("c"),
          type,
          id: "1",
          outputs: { a: 1, made: true, ...(doing === "deleting" && { ending: true }), incomplete: true },
          initErrors: [`interrupted while ${doing}`],
        },
      ],
    });
  });

const pending = (...operations: unknown[]) =>
  JSON.stringify({ checkpoint: { latest: { pending_operations: operations } } });

for (const [what, files, known, asked] of [
  ["no state", {}, false, false],
  ["a new stack", { "s.json": "{}" }, true, false],
  ["nothing half done", { "s.json": pending() }, true, false],
  ["an operation half done", { "s.json": pending({}) }, true, true],
  ["packed, which only Pulumi reads", { "s.json.gz": "" }, true, true],
  ["packed in the other way", { "s.json.zst": "" }, true, true],
] as const)
  test(`is there a state, and is Pulumi asked for half-done operations: ${what}`, () => {
    const folder = join(dir, ".pulumi", "stacks", "kubexm");
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const file = stateFile(dir, "kubexm", "organization/kubexm/s");
    assert.deepEqual([isKnown(file), mayBePending(file)], [known, asked]);
  });

for (const [what, bak, told] of [
  ["with the one before it", true, /s\.json is damaged .*: put the one before it, .*\/s\.json\.bak, in its place/],
  ["with none before it", false, /s\.json is damaged .*: put it back from a backup$/],
] as const)
  test(`a state that was emptied is named, and the way out: ${what}`, () => {
    const file = stateFile(dir, "kubexm", "s");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "");
    if (bak) writeFileSync(`${file}.bak`, pending());
    assert.throws(() => mayBePending(file), told);
  });

const made = JSON.stringify({ checkpoint: { latest: { resources: [{}] } } });
const nothing = JSON.stringify({ checkpoint: { latest: {} } });

for (const [what, here, there, want] of [
  ["nowhere", undefined, undefined, "here"],
  ["beside the file only", undefined, made, "there"],
  ["beside the file, and a look from here left folders", "", made, "there"],
  ["beside the file, and a preview from here left one of nothing", nothing, made, "there"],
  ["in both", made, made, "here"],
  ["here, one of nothing beside the file", made, nothing, "here"],
  ["of nothing in both", nothing, nothing, "here"],
  ["here, and it cannot be read", "{", made, "here"],
] as const)
  test(`the home of a cluster whose state is ${what}`, () => {
    const places = { here: dir, there: join(dir, "there") };
    const put = (folder: string, text: string | undefined) => {
      if (text === undefined) return;
      const stacks = join(folder, ".kubexm", "c", "state", ".pulumi", "stacks", "kubexm");
      mkdirSync(stacks, { recursive: true });
      if (text !== "") writeFileSync(join(stacks, "c.json"), text);
    };
    put(places.here, here);
    put(places.there, there);
    assert.equal(homeOf("c", join(places.there, "cluster.yaml"), dir).dir, join(places[want], ".kubexm", "c"));
  });

test("the home of a cluster whose first run was killed is where that has left its journal", () => {
  const there = join(dir, "there");
  for (const folder of [dir, there]) {
    const file = stateFile(join(folder, ".kubexm", "c", "state"), "kubexm", "c");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, nothing);
  }
  writeFileSync(homeOf("c", "cluster.yaml", there).journal, "");
  assert.equal(homeOf("c", join(there, "cluster.yaml"), dir).dir, join(there, ".kubexm", "c"));
});

test("a journal is of one stack only", () => {
  const journalOf = (stack: string) => {
    process.env["PULUMI_STACK"] = stack;
    return homeOf("c", "cluster.yaml", dir).journal;
  };
  try {
    assert.notEqual(journalOf("one"), journalOf("two"));
    assert.equal(journalOf("organization/kubexm/one"), journalOf("one"));
  } finally {
    delete process.env["PULUMI_STACK"];
  }
});

test("without any set-up: a file backend and a passphrase of its own, kept and closed to others", () => {
  const home = homeOf("c", "cluster.yaml", dir);
  const { env, state } = prepare(home, {});
  assert.equal(state, home.state);
  assert.equal(env["PULUMI_BACKEND_URL"], `file://${home.state}?metadata=skip`);
  assert.equal(env["PULUMI_CONFIG_PASSPHRASE_FILE"], home.passphrase);
  assert.equal(env["PULUMI_PARALLEL"], "64");
  assert.equal(env["GOGC"], "400");
  assert.match(env["NODE_OPTIONS"] ?? "", /^--max-semi-space-size=4 --max-old-space-size=1024 --require /);
  const phrase = readFileSync(home.passphrase, "utf8");
  assert.equal(Buffer.from(phrase, "base64url").length, 32);
  for (const [path, mode] of [
    [home.passphrase, 0o600],
    [home.state, 0o700],
    [home.dir, 0o700],
  ] as const)
    assert.equal(statSync(path).mode & 0o777, mode, path);
  prepare(home, {});
  assert.equal(readFileSync(home.passphrase, "utf8"), phrase);
});

test("a folder whose name means something in an address, and an empty setting, which is none", () => {
  const odd = join(dir, "C# 100%");
  const home = homeOf("c", "cluster.yaml", odd);
  const { env, state, own } = prepare(home, { PULUMI_BACKEND_URL: "" });
  assert.deepEqual([state, own], [home.state, true]);
  const url = new URL(env["PULUMI_BACKEND_URL"] ?? "");
  assert.deepEqual([decodeURIComponent(url.pathname), url.search], [home.state, "?metadata=skip"]);
});

test("a file backend of the user's: its folder, as the address means it, which kubexm did not lay out", () => {
  const { state, own } = prepare(homeOf("c", "cluster.yaml", dir), {
    PULUMI_BACKEND_URL: "file:///srv/my%20states?no_tmp_dir=true",
  });
  assert.deepEqual([state, own], ["/srv/my states", false]);
});

test("the provider finds kubexm and the SDK from its folder", () => {
  const home = homeOf("c", "cluster.yaml", dir);
  prepare(home, {});
  const found = (name: string) => realpathSync(join(home.work, "node_modules", name));
  assert.equal(found("kubexm"), realpathSync(join(__dirname, "..", "..", "..")));
  assert.ok(existsSync(join(found("@pulumi/pulumi"), "cmd", "dynamic-provider", "index.js")));
});

for (const [what, user, want, passphraseMade] of [
  ["a passphrase of the user's", { PULUMI_CONFIG_PASSPHRASE: "" }, { PULUMI_CONFIG_PASSPHRASE_FILE: undefined }, false],
  [
    "a passphrase file of the user's",
    { PULUMI_CONFIG_PASSPHRASE_FILE: "/p" },
    { PULUMI_CONFIG_PASSPHRASE_FILE: "/p" },
    false,
  ],
  [
    "a passphrase file as seen from here",
    { PULUMI_CONFIG_PASSPHRASE_FILE: "p" },
    { PULUMI_CONFIG_PASSPHRASE_FILE: join(process.cwd(), "p") },
    false,
  ],
  [
    "a passphrase file as seen from here, with a backend of the user's",
    { PULUMI_CONFIG_PASSPHRASE_FILE: "p", PULUMI_BACKEND_URL: "s3://b" },
    { PULUMI_CONFIG_PASSPHRASE_FILE: join(process.cwd(), "p") },
    false,
  ],
  ["the name of no passphrase file, as none", { PULUMI_CONFIG_PASSPHRASE_FILE: "" }, {}, true],
  [
    "a backend of the user's, with the user's login",
    { PULUMI_BACKEND_URL: "s3://b" },
    { PULUMI_BACKEND_URL: "s3://b", PULUMI_HOME: undefined },
    false,
  ],
  [
    "a file backend with a setting",
    { PULUMI_BACKEND_URL: "file://x?metadata=skip" },
    { PULUMI_BACKEND_URL: `file://${process.cwd()}/x?metadata=skip` },
    false,
  ],
  [
    "a file backend as Pulumi would read it from here",
    { PULUMI_BACKEND_URL: "file://x" },
    { PULUMI_BACKEND_URL: `file://${process.cwd()}/x` },
    false,
  ],
  ["the user's own parallelism", { PULUMI_PARALLEL: "3" }, { PULUMI_PARALLEL: "3" }, true],
  ["the user's own word on Go's memory", { GOGC: "100" }, { GOGC: "100" }, true],
  [
    "the user's own limit of memory",
    { NODE_OPTIONS: "--max-old-space-size=8192" },
    { NODE_OPTIONS: `${NODE_OPTIONS.join(" ")} --max-old-space-size=8192` },
    true,
  ],
] as const)
  test(`respected: ${what}`, () => {
    const home = homeOf("c", "cluster.yaml", dir);
    const { env, state } = prepare(home, user);
    for (const [name, value] of Object.entries(want)) assert.equal(env[name], value, name);
    if (what.startsWith("a file backend")) assert.equal(state, join(process.cwd(), "x"));
    assert.equal(existsSync(home.passphrase), passphraseMade);
  });

for (const [what, stacks, length] of [
  ["before there is a state: made anew", false, 43],
  ["of a state, which was encrypted with that: kept", true, 0],
] as const)
  test(`an empty passphrase, as a full disk leaves it, ${what}`, () => {
    const home = homeOf("c", "cluster.yaml", dir);
    mkdirSync(stacks ? join(home.state, ".pulumi", "stacks") : home.dir, { recursive: true });
    writeFileSync(home.passphrase, "");
    prepare(home, {});
    assert.equal(statSync(home.passphrase).size, length);
    assert.deepEqual(readdirSync(home.dir).sort(), ["logs", "passphrase", "pulumi", "state"]);
  });

test("a lost passphrase is told before Pulumi fails on it", () => {
  const home = homeOf("c", "cluster.yaml", dir);
  mkdirSync(join(home.state, ".pulumi", "stacks"), { recursive: true });
  assert.throws(() => prepare(home, {}), /passphrase is missing and the state beside it is encrypted with it/);
});
