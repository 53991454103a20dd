import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import ssh2, { type BaseAgent, type ParsedKey } from "ssh2";
import { authPlan } from "../../provider/ssh/auth";
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

test("an agent with many keys: the one that is named comes first, of the others no more than sshd has patience for", async () => {
  const keys = Array.from({ length: 7 }, newKey);
  const named = keys[6]?.public ?? "";
  const identity = join(dir.path, "locked");
  writeFileSync(identity, "only the agent has it open");
  writeFileSync(`${identity}.pub`, named);
  await agentWith(keys, async (socket) => {
    const { attempts } = await authPlan({ ...target, identityFiles: [identity] }, socket);
    assert.deepEqual(
      attempts.map(({ name }) => name),
      ["agent (5 keys)"],
    );
    const { agent } = attempts[0]?.method as { agent: BaseAgent<ParsedKey> };
    const offered = await new Promise<ParsedKey[]>((resolve) => {
      agent.getIdentities((_, all) => {
        resolve((all ?? []) as ParsedKey[]);
      });
    });
    assert.ok(offered[0]?.getPublicSSH().equals(parsed(named).getPublicSSH()));
  });
});

test("an agent that never answers is left when the time to connect is over", () =>
  agentWith(undefined, async (socket) => {
    const plan = await authPlan({ ...target, connectTimeoutMs: 50, password: "p" }, socket);
    assert.deepEqual(plan.unusable, ["agent: it does not answer"]);
    assert.equal(plan.attempts[0]?.name, "password");
  }));
