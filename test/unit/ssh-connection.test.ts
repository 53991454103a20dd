import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { AuthContext } from "ssh2";
import type { RemoteReason } from "../../provider/errors";
import { sh } from "../../provider/shell";
import { closeAll, connect, countConnections, hostSpec, type HostSpec } from "../../provider/ssh";
import { keepAlive } from "../../provider/ssh/dial";
import { linkTo } from "../../provider/ssh/link";
import { resolveTarget } from "../../provider/ssh/target";
import { refusal } from "../harness/refusal";
import { folder, newKey, startMute, startServer, type ServerOptions, type TestServer } from "./ssh-server";

const servers: { stop: () => void }[] = [];

async function server(options?: ServerOptions): Promise<TestServer> {
  const started = await startServer(options);
  servers.push(started);
  return started;
}

afterEach(async () => {
  await closeAll();
  for (const started of servers.splice(0)) started.stop();
});

test("all users of a host share one connection", async () => {
  const host = await server();
  const before = countConnections();
  const remotes = await Promise.all(Array.from({ length: 20 }, () => connect(host.spec())));
  const results = await Promise.all(remotes.map((remote, i) => remote.run(sh`echo ${i}`)));
  assert.deepEqual(
    results.map((result) => result.stdout),
    results.map((_, i) => `${i}\n`),
  );
  const now = countConnections();
  assert.equal(host.logins(), 1);
  assert.equal(now.connections - before.connections, 1);
  assert.equal(now.dials - before.dials, 1);
  assert.equal(now.sessions - before.sessions, 20);
  assert.ok(now.bytesRead > before.bytesRead && now.bytesWritten > before.bytesWritten);
});

test("another user is another connection", async () => {
  const host = await server();
  await connect(host.spec());
  await connect(host.spec({ user: "other" }));
  assert.equal(host.logins(), 2);
});

test("closeAll ends the connections, and the next use dials again", async () => {
  const host = await server();
  const remote = await connect(host.spec());
  await closeAll();
  assert.equal(countConnections().open, 0);
  assert.equal((await remote.run(sh`echo again`)).stdout, "again\n");
  assert.equal(host.logins(), 2);
});

test("no more than four commands run at once", async () => {
  let most = 0;
  const host = await server({ onSession: (count) => (most = Math.max(most, count)) });
  const remote = await connect(host.spec());
  await Promise.all(Array.from({ length: 12 }, () => remote.run(sh`sleep 0.02`)));
  assert.equal(most, 4);
});

for (const maxSessions of [1, 2, 3])
  test(`a host that allows ${maxSessions} sessions is served over one connection`, async () => {
    const host = await server({ maxSessions });
    const remote = await connect(host.spec());
    const results = await Promise.all(Array.from({ length: 12 }, (_, i) => remote.run(sh`sleep 0.01; echo ${i}`)));
    assert.equal(
      results.map((result) => result.stdout).join(""),
      Array.from({ length: 12 }, (_, i) => `${i}\n`).join(""),
    );
    assert.equal(host.logins(), 1);
  });

test("a connection lost while idle is dialled again, once", async () => {
  const host = await server();
  const remote = await connect(host.spec());
  for (const connection of host.connections) connection.end();
  const results = await Promise.all([1, 2, 3].map((i) => remote.run(sh`echo ${i}`)));
  assert.equal(results.map((result) => result.stdout).join(""), "1\n2\n3\n");
  assert.equal(host.logins(), 2);
});

test("a connection lost while a command runs is an error that says so, and nothing is run twice", async () => {
  let runs = 0;
  const host = await server({
    exec: (channel) => {
      runs++;
      channel.on("data", () => {
        channel.write("kubexm:begin\nhalf");
        for (const connection of host.connections) connection.end();
      });
    },
  });
  const remote = await connect(host.spec());
  const error = await refusal(remote.run(sh`sleep 5`), "disconnected");
  assert.match(error.message, /broke while it ran/);
  assert.equal(runs, 1);
});

test("a bastion carries all hosts behind it over one connection, and each host's key is checked", async () => {
  const bastion = await server();
  const hosts = await Promise.all([server(), server(), server()]);
  const via = (host: TestServer) => {
    const known = join(dir.path, `known-${host.port}`);
    writeFileSync(known, [bastion, host].map(({ port, host: key }) => `[127.0.0.1]:${port} ${key.public}\n`).join(""));
    const { address, port, user, privateKey, agent } = bastion.spec();
    return host.spec({ knownHostsPath: known, bastions: [{ address, port, user, privateKey, agent }] });
  };
  const outputs = await Promise.all(hosts.map(async (host) => (await connect(via(host))).run(sh`echo ${host.port}`)));
  assert.deepEqual(
    outputs.map(({ stdout }) => stdout),
    hosts.map((host) => `${host.port}\n`),
  );
  assert.equal(bastion.logins(), 1);
  await closeAll();
  const unknown = { ...via(hosts[0]), knownHostsPath: join(dir.path, "none") };
  const error = await refusal(connect(unknown), "hostkey");
  assert.match(error.message, /bastion 127\.0\.0\.1/);
});

test("a host behind a bastion that refuses it", async () => {
  const bastion = await server();
  const { address, port, user, privateKey, agent, knownHostsPath } = bastion.spec();
  const closed = await startMute();
  closed.stop();
  const spec = bastion.spec({
    port: closed.port,
    bastions: [{ address, port, user, privateKey, agent }],
    knownHostsPath,
  });
  assert.match((await refusal(connect(spec), "unreachable")).message, /through bastion 127\.0\.0\.1/);
});

const dir = folder();
after(dir.remove);

function plainSpec(port: number, more: Partial<HostSpec> = {}): HostSpec {
  return hostSpec.parse({
    name: "m1",
    address: "127.0.0.1",
    port,
    user: "root",
    privateKey: newKey().private,
    agent: false,
    knownHostsPath: join(dir.path, "none"),
    connectTimeout: 1,
    ...more,
  });
}

test("a port nobody listens at is told at once, without a second try", async () => {
  const closed = await startMute();
  closed.stop();
  const before = countConnections().dials;
  const error = await refusal(connect(plainSpec(closed.port)), "unreachable");
  assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${closed.port} cannot be reached: .*ECONNREFUSED`));
  assert.match(error.failure.advice ?? "", /sshd/);
  assert.equal(countConnections().dials - before, 1);
});

test("small packets go at once: to wait for more of them costs more than all else", async (t) => {
  const host = await server();
  const dialled = t.mock.method(net, "connect");
  await connect(host.spec());
  assert.deepEqual(
    dialled.mock.calls.map(({ arguments: [to] }) => to),
    [{ host: "127.0.0.1", port: host.port, noDelay: true }],
  );
});

test("a name that does not exist", async () => {
  const error = await refusal(connect(plainSpec(22, { address: "no-such-host.invalid" })), "unreachable");
  assert.match(error.message, /no-such-host\.invalid/);
});

test("a bastion that never gets through to the host ends with the connect timeout", async () => {
  const bastion = await server({ forward: () => undefined });
  const { address, port, user, privateKey, agent, knownHostsPath } = bastion.spec();
  const bastions = [{ address, port, user, privateKey, agent }];
  const error = await refusal(connect(plainSpec(22, { bastions, knownHostsPath })), "unreachable");
  assert.match(error.message, /through bastion 127\.0\.0\.1: no answer within 1 s/);
});

test("no more than four logins to one address are under way at once, whoever they are for", async () => {
  let open = 0;
  let most = 0;
  const host = await server({
    auth: (context) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        context.accept();
      }, 20);
    },
  });
  await Promise.all(Array.from({ length: 9 }, (_, i) => connect(host.spec({ user: `user${i}` }))));
  assert.equal(host.logins(), 9);
  assert.equal(most, 4);
});

test("a server that never answers ends with the connect timeout", async () => {
  const mute = await startMute();
  servers.push(mute);
  const error = await refusal(connect(plainSpec(mute.port)), "unreachable");
  assert.match(error.message, /did not finish within 1 s/);
  assert.equal(mute.count(), 1);
});

test("connections dropped before the banner are tried again, later and later, and then explained", async () => {
  const mute = await startMute((socket) => socket.destroy());
  servers.push(mute);
  const error = await refusal(connect(plainSpec(mute.port, { connectTimeout: 2 })), "unreachable");
  assert.ok(mute.count() > 2 && mute.count() < 12, String(mute.count()));
  assert.match(error.message, /MaxStartups.*PerSourcePenalties/);
});

test("a server dropping the first connections is reached all the same", async () => {
  const host = await server();
  const flaky = await startMute((socket, count) => {
    if (count <= 2) return void socket.destroy();
    const out = net.connect(host.port, "127.0.0.1");
    out.on("error", () => socket.destroy());
    socket.pipe(out).pipe(socket);
  });
  servers.push(flaky);
  const remote = await connect(host.spec({ port: flaky.port, hostKey: host.host.public }));
  assert.equal((await remote.run(sh`echo up`)).stdout, "up\n");
});

const keys: readonly [name: string, more: (host: TestServer) => Partial<HostSpec>, reason?: RemoteReason][] = [
  ["known", () => ({})],
  ["pinned", (host) => ({ hostKey: host.host.public, knownHostsPath: join(dir.path, "none") })],
  ["unknown", () => ({ knownHostsPath: join(dir.path, "none") }), "hostkey"],
  ["pinned by another", () => ({ hostKey: newKey().public }), "hostkey"],
  ["accept-new", () => ({ hostKeyChecking: "accept-new", knownHostsPath: join(dir.path, "accepted") })],
];

for (const [name, more, reason] of keys)
  test(`host key ${name}: ${reason ? "refused before any credential is sent" : "connects"}`, async () => {
    const host = await server();
    const work = connect(host.spec(more(host)));
    if (reason) await refusal(work, reason);
    else await work;
    assert.equal(host.tried.length > 0, reason === undefined);
  });

test("who pins another key does not get the connection others share", async () => {
  const host = await server();
  await connect(host.spec());
  await connect(host.spec({ hostKey: host.host.public }));
  await refusal(connect(host.spec({ hostKey: newKey().public })), "hostkey");
  assert.equal(host.logins(), 1);
});

test("who pins another key of a bastion does not get the connection others share", async () => {
  const bastion = await server();
  const { address, port, user, privateKey, agent } = bastion.spec();
  const host = await server();
  const via = (hostKey: string) =>
    host.spec({ hostKey: host.host.public, bastions: [{ address, port, user, privateKey, agent, hostKey }] });
  await connect(via(bastion.host.public));
  assert.match((await refusal(connect(via(newKey().public)), "hostkey")).message, /bastion 127\.0\.0\.1/);
  assert.equal(host.logins(), 1);
});

test("a refusal is remembered, so that a host's many resources do not repeat it", async () => {
  const host = await server({ auth: (context) => context.reject(["publickey"]) });
  for (let i = 0; i < 5; i++) await refusal(connect(host.spec()), "auth");
  assert.equal(host.tried.length, 1);
  await refusal(connect(host.spec({ privateKey: newKey().private })), "auth");
  assert.equal(host.tried.length, 2, "other credentials are tried");
});

const accept =
  (method: string, check: (context: AuthContext) => boolean = () => true) =>
  (context: AuthContext) =>
    context.method === method && check(context)
      ? context.accept()
      : context.reject(["publickey", "password", "keyboard-interactive"]);

const logins: readonly [name: string, auth: (context: AuthContext) => void, tried: readonly string[]][] = [
  ["key first", accept("publickey"), ["publickey", "publickey"]],
  [
    "password after the key",
    accept("password", (c) => c.method === "password" && c.password === "s3cret"),
    ["publickey", "password"],
  ],
  [
    "keyboard-interactive where there is no password method",
    (context) => {
      if (context.method !== "keyboard-interactive") return context.reject(["publickey", "keyboard-interactive"]);
      context.prompt([{ prompt: "Password: ", echo: false }], (answers) =>
        answers[0] === "s3cret" ? context.accept() : context.reject(),
      );
    },
    ["publickey", "keyboard-interactive"],
  ],
  [
    "key and password, both wanted",
    (context) => {
      if (context.method === "publickey" && context.signature) return context.reject(["password"], true);
      if (context.method === "password") return context.accept();
      if (context.method === "publickey") return context.accept();
      context.reject(["publickey"]);
    },
    ["publickey", "publickey", "password"],
  ],
];

for (const [name, auth, tried] of logins)
  test(`login: ${name}`, async () => {
    const host = await server({ auth });
    await connect(host.spec({ password: "s3cret" }));
    assert.deepEqual(
      host.tried.map((line) => line.split(" ")[0]),
      tried,
    );
  });

test("a wrong password is tried once, in one way, and never printed", async () => {
  const host = await server({
    auth: (context) => context.reject(["publickey", "password", "keyboard-interactive"]),
  });
  const error = await refusal(connect(host.spec({ password: "s3cret-canary" })), "auth");
  assert.deepEqual(
    host.tried.map((line) => line.split(" ")[0]),
    ["publickey", "password"],
  );
  assert.match(error.message, /tried privateKey, password; the host allows publickey, password/);
  assert.ok(!`${error.message}${JSON.stringify(error.failure)}`.includes("canary"));
});

/** Hands everything on until it is told to swallow it, as a broken link does. */
async function valve(to: number) {
  let open = true;
  const relay = await startMute((socket) => {
    const out = net.connect(to, "127.0.0.1");
    out.on("error", () => socket.destroy());
    socket.on("data", (chunk) => open && out.write(chunk));
    out.on("data", (chunk) => open && socket.write(chunk));
  });
  servers.push(relay);
  return { port: relay.port, close: () => (open = false), reopen: () => (open = true) };
}

test("a connection that falls silent is given up, its command says so, and the next use dials again", async () => {
  const host = await server();
  const way = await valve(host.port);
  const spec = host.spec({ port: way.port, hostKey: host.host.public });
  const remote = await connect(spec);
  const live = await linkTo(resolveTarget(spec)).live;
  assert.ok(live);
  keepAlive(live, { everyMs: 300, misses: 3 });
  assert.equal((await remote.run(sh`sleep 1; echo long but alive`)).stdout, "long but alive\n");
  assert.equal(live.closed, false);
  const work = refusal(remote.run(sh`echo on; sleep 3`, { onLine: way.close }), "disconnected");
  await work;
  assert.equal(live.closed, true);
  way.reopen();
  assert.equal((await remote.run(sh`echo back`)).stdout, "back\n");
});

test("an idle connection does not keep the process alive", async () => {
  const host = await server();
  const { spawn } = await import("node:child_process");
  const script = `
    const { connect } = require(${JSON.stringify(require.resolve("../../provider/ssh"))});
    const { sh } = require(${JSON.stringify(require.resolve("../../provider/shell"))});
    connect(${JSON.stringify(host.spec())}).then((r) => r.run(sh\`echo done\`)).then((r) => console.log(r.stdout.trim()));`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // Idle connections close after 10 s by themselves; without that the process must end well before.
  const first = await Promise.race([ended, sleep(8_000, "still there", { ref: false })]);
  child.kill();
  assert.equal(first, 0);
  assert.equal(output.trim(), "done");
});
