import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import ssh2, { type BaseAgent, type ParsedKey } from "ssh2";
import { authHandler, authPlan, nothingToTry } from "../../provider/ssh/auth";
import type { Target } from "../../provider/ssh/target";
import { folder, newKey, type KeyPair } from "./ssh-server";

const dir = folder();
after(() => dir.remove());

const target = {
  label: "h1",
  address: "192.0.2.1",
  port: 22,
  user: "u",
  agent: true,
  identityFiles: [] as string[],
  hostKeyChecking: "strict" as const,
  knownHosts: [],
  connectTimeoutMs: 1000,
};

const parsed = (text: string) => ssh2.utils.parseKey(text) as ParsedKey;

/** An agent at a socket of its own; without keys one that never answers. */
async function agentWith(keys: readonly KeyPair[] | undefined, use: (socket: string) => Promise<void>) {
  const path = join(dir.path, "agent");
  const open: Socket[] = [];
  const agent = createServer((socket) => {
    open.push(socket);
    if (keys === undefined) return;
    const protocol = new ssh2.AgentProtocol(false);
    protocol.on("identities", (request: unknown) => {
      protocol.getIdentitiesReply(
        request as never,
        keys.map((key) => parsed(key.public)),
      );
    });
    socket.on("error", () => undefined);
    socket.pipe(protocol).pipe(socket);
  });
  await once(agent.listen(path), "listening");
  try {
    await use(path);
  } finally {
    open.forEach((socket) => socket.destroy());
    agent.close();
  }
}

const given = { privateKey: newKey().private };
const password = { password: "p" };
/** Of an agent with seven keys: how many files name one, what else there is to try, and how many of them are offered. */
const many: readonly [named: number, besides: Partial<Target>, offered: number][] = [
  [0, {}, 4],
  [0, given, 4],
  [0, password, 4],
  [0, { ...given, ...password }, 4],
  [1, {}, 5],
  [1, password, 5],
  [1, { ...given, ...password }, 4],
  [2, {}, 6],
  [2, given, 5],
  [2, password, 5],
  [3, {}, 6],
  [3, password, 5],
  [6, password, 6],
];

for (const [named, besides, offered] of many)
  test(`an agent with seven keys, ${[`${named} named`, ...Object.keys(besides)].join(", ")}: ${offered} are offered, those first`, async () => {
    const keys = Array.from({ length: 7 }, newKey);
    const identityFiles = keys.slice(7 - named).map((key, i) => {
      const path = join(dir.path, `locked-${named}-${i}`);
      writeFileSync(path, "only the agent has it open");
      writeFileSync(`${path}.pub`, key.public);
      return path;
    });
    await agentWith(keys, async (socket) => {
      const { attempts } = await authPlan({ ...target, ...besides, identityFiles }, socket);
      const { name, method } = attempts.find(({ type }) => type === "agent") ?? assert.fail("no agent is tried");
      assert.equal(name, `agent (${offered} keys)`);
      const { agent } = method as { agent: BaseAgent<ParsedKey> };
      const shown = await new Promise<ParsedKey[]>((resolve) => {
        agent.getIdentities((_, all) => {
          resolve((all ?? []) as ParsedKey[]);
        });
      });
      const wanted = keys.slice(7 - named).map((key) => parsed(key.public).getPublicSSH());
      assert.deepEqual(
        shown.slice(0, named).map((key) => key.getPublicSSH()),
        wanted,
      );
      assert.equal(shown.length, offered);
    });
  });

test("an agent that never answers is left when the time to connect is over", () =>
  agentWith(undefined, async (socket) => {
    const plan = await authPlan({ ...target, connectTimeoutMs: 50, password: "p" }, socket);
    assert.deepEqual(plan.unusable, ["agent: it does not answer"]);
    assert.equal(plan.attempts[0]?.name, "password");
  }));

test("no key, agent or password: nothing is left to try", async () => {
  const plan = await authPlan({ ...target, identityFiles: [join(dir.path, "missing")] });
  assert.deepEqual(plan, { attempts: [], unusable: [] });
  const error = nothingToTry(target, plan);
  assert.match(error.message, /there is no key, agent or password to try/);
  assert.doesNotMatch(error.message, /refused|not tried again/);
});

test("keys in files are tried once each, encrypted ones are named, and few enough for MaxAuthTries", async () => {
  const names = Array.from({ length: 8 }, (_, i) => join(dir.path, `id${i}`));
  for (const name of names) writeFileSync(name, newKey().private);
  const given = newKey();
  writeFileSync(join(dir.path, "same"), given.private);
  writeFileSync(
    join(dir.path, "junk"),
    "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
  );
  const plan = await authPlan({
    ...target,
    privateKey: given.private,
    password: "p",
    identityFiles: [join(dir.path, "missing"), join(dir.path, "same"), join(dir.path, "junk"), ...names],
  });
  const tried = plan.attempts.map((attempt) => attempt.name);
  assert.deepEqual(tried.slice(0, 2), ["privateKey", names[0]]);
  assert.deepEqual(tried.slice(-2), ["password", "keyboard-interactive"]);
  assert.ok(plan.attempts.filter((attempt) => attempt.type === "publickey").length <= 5);
  assert.equal(plan.unusable.length, 1);
  assert.match(plan.unusable[0] ?? "", /junk/);
});

function lockedKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey
    .export({ type: "pkcs1", format: "pem", cipher: "aes-128-cbc", passphrase: "open sesame" })
    .toString();
}

const useless: readonly [name: string, make: (path: string) => void, passphrase: string | undefined, says: RegExp][] = [
  ["a folder", (path) => mkdirSync(path), undefined, /EISDIR/],
  ["encrypted, no passphrase", (path) => writeFileSync(path, lockedKey()), undefined, /ncrypted.* no passphrase given/],
  ["encrypted, a wrong passphrase", (path) => writeFileSync(path, lockedKey()), "wrong", /Bad passphrase/],
  ["a public key", (path) => writeFileSync(path, newKey().public), undefined, /it is a public key/],
];

for (const [name, make, passphrase, says] of useless)
  test(`a key that cannot be used is named, and why: ${name}`, async () => {
    const path = join(dir.path, name);
    make(path);
    const login = { ...target, ...(passphrase !== undefined && { passphrase }) };
    const plans = [
      await authPlan({ ...login, privateKeyPath: path }),
      await authPlan({ ...login, identityFiles: [path] }),
    ];
    for (const { attempts, unusable } of plans) {
      assert.deepEqual(attempts, []);
      const [why = "", ...others] = unusable;
      assert.deepEqual(others, []);
      assert.ok(why.startsWith(`${path}: `), why);
      assert.match(why, says);
    }
  });

test("methods the server does not offer are left out", async () => {
  const plan = await authPlan({ ...target, privateKey: newKey().private, password: "p" });
  const { next, state } = authHandler(plan);
  const first = next(null, null);
  assert.equal(first && first.type, "publickey");
  const second = next(["publickey", "keyboard-interactive"], false);
  assert.equal(second && second.type, "keyboard-interactive");
  assert.equal(next(["publickey"], false), false);
  assert.equal(state.exhausted, true);
});
