import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { ServerChannel } from "ssh2";
import { RemoteError } from "../../provider/errors";
import { connect, type Remote, type Upload } from "../../provider/ssh";
import { close, linkTo } from "../../provider/ssh/link";
import { resolveTarget } from "../../provider/ssh/target";
import { sshSeat } from "../harness/ssh-seat";
import { realShell, startMute, startServer, type ServerOptions, type TestServer } from "./ssh-server";

const seat = sshSeat();
const { dir } = seat;
let count = 0;

const sha256 = (body: Buffer) => createHash("sha256").update(body).digest("hex");

/** A folder of its own for each case, so that what is left over shows. */
function place(): string {
  const path = join(dir.path, `case${++count}`);
  mkdirSync(path);
  return path;
}

/** A file here. */
function local(body: Buffer): string {
  const path = join(dir.path, `local${++count}`);
  writeFileSync(path, body);
  return path;
}

const of = (to: string, body: Buffer): Upload => ({
  to,
  path: local(body),
  bytes: body.length,
  sha256: sha256(body),
});

const MiB = 1024 * 1024;
const bodies: readonly [name: string, body: Buffer][] = [
  ["empty", Buffer.alloc(0)],
  ["one byte", Buffer.from("x")],
  ["binary with newlines", Buffer.from([0, 10, 13, 0, 255, 10])],
  ["one piece", randomBytes(MiB / 2)],
  ["odd size", randomBytes(3 * MiB + 17)],
];
const body = randomBytes(9 * MiB);
const far: readonly [name: string, body: Buffer][] = [
  ["whole blocks", randomBytes(8 * MiB)],
  ["odd size", randomBytes(9 * MiB + 12_345)],
];

/** As if the host were far away: big bodies then go over several sessions. */
async function farAway(server: TestServer, seat: Remote, rttMs = 50): Promise<void> {
  const live = await linkTo(resolveTarget(server.spec())).live;
  assert.ok(live && seat.name === "m1");
  live.roundTrip = () => Promise.resolve(rttMs);
}

async function uploaded(to: Remote, body: Buffer): Promise<void> {
  const path = place();
  const file = join(path, "file");
  await to.upload(of(file, body));
  assert.ok(readFileSync(file).equals(body));
  assert.equal(statSync(file).mode & 0o7777, 0o600);
  assert.deepEqual(readdirSync(path), ["file"]);
}

for (const [name, body] of bodies) test(`upload: ${name}`, () => uploaded(seat.remote, body));

for (const [name, body] of far)
  for (const maxSessions of [1, 2, 10])
    test(`upload over a long way: ${name}, ${maxSessions} sessions`, async () => {
      const server = await startServer({ maxSessions });
      try {
        const there = await connect(server.spec());
        await farAway(server, there);
        const before = server.commands.length;
        await uploaded(there, body);
        assert.ok(server.commands.length - before >= 4, "it went over several sessions");
        assert.equal(server.logins(), 1);
      } finally {
        server.stop();
      }
    });

/** Every byte takes this long, in both directions. */
async function delayed(to: number, ms: number) {
  return startMute((near) => {
    const far = net.connect(to, "127.0.0.1");
    for (const [from, onward] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => onward.destroy()).on("close", () => onward.destroy());
      from.on("data", (bytes) => setTimeout(() => onward.write(bytes), ms));
    }
  });
}

/** How many sessions carry a big body by a connection of its own, whose process was busy when it began. */
async function sessionsOfBig(server: TestServer, port: number): Promise<number> {
  const spec = server.spec({ port, hostKey: server.host.public });
  const connecting = connect(spec);
  setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100));
  const there = await connecting;
  const before = server.commands.length;
  const body = randomBytes(8 * MiB);
  await uploaded(there, body);
  await close(linkTo(resolveTarget(spec)));
  return server.commands.length - before;
}

test("a near host gets a big body over one session", async () => {
  const server = await startServer();
  const found: number[] = [];
  try {
    // A machine that is busy all the time may really be slow to answer.
    while (!found.includes(1) && found.length < 5) found.push(await sessionsOfBig(server, server.port));
    assert.ok(found.includes(1), `never one: ${found.join(", ")}`);
  } finally {
    server.stop();
  }
});

test("a far host gets a big body over several sessions", async () => {
  const server = await startServer();
  const way = await delayed(server.port, 8);
  try {
    assert.equal(await sessionsOfBig(server, way.port), 4);
  } finally {
    way.stop();
    server.stop();
  }
});

test("of a file that has grown since, what was announced", async () => {
  const to = join(place(), "file");
  await seat.remote.upload({ ...of(to, Buffer.from("old")), path: local(Buffer.from("old and new")) });
  assert.equal(readFileSync(to, "utf8"), "old");
});

for (const [way, rttMs] of [
  ["near", 0],
  ["far", 50],
] as const)
  test(`upload to where it goes, on another file system (${way})`, async () => {
    const server = await startServer();
    const other = mkdtempSync("/dev/shm/kubexm-");
    try {
      const there = await connect(server.spec());
      await farAway(server, there, rttMs);
      const [to, near] = [join(place(), "file"), join(other, ".name")];
      assert.notEqual(statSync(other).dev, statSync(dir.path).dev);
      for (const from of [body, Buffer.from("again")]) {
        await there.upload({ ...of(to, from), waitsAt: join(other, "not", "there", "yet", ".name") });
        assert.equal(readlinkSync(to), near);
        assert.ok(readFileSync(near).equals(from));
        assert.deepEqual(readdirSync(other), [".name"]);
      }
      assert.equal(statSync(near).mode & 0o7777, 0o600);
      await refused(there.upload({ ...of(to, body), waitsAt: near, sha256: "0".repeat(64) }));
      assert.deepEqual(readdirSync(other), []);
      mkdirSync(join(other, "not"));
      const deeper = join(other, "not", "there", ".name");
      for (const waitsAt of [near, deeper]) await there.upload({ ...of(to, body), waitsAt });
      assert.deepEqual([readdirSync(other), readdirSync(join(other, "not"))], [["not"], [".name"]]);
    } finally {
      rmSync(other, { recursive: true });
      server.stop();
    }
  });

test("upload to where it goes, on the same file system: no link", async () => {
  const path = place();
  await seat.remote.upload({ ...of(join(path, "file"), Buffer.from("x")), waitsAt: join(path, ".name") });
  assert.deepEqual(readdirSync(path), ["file"]);
  assert.ok(!lstatSync(join(path, "file")).isSymbolicLink());
});

for (const name of ["with space", "quo'te", 'dou"ble', "$(touch hacked)", "-dash", "back\\slash", "*", "é漢🦀", ";x"])
  test(`upload to a file named ${name}`, async () => {
    const path = place();
    await seat.remote.upload(of(join(path, name), Buffer.from(name)));
    assert.deepEqual(readdirSync(path), [name]);
    assert.equal(readFileSync(join(path, name), "utf8"), name);
  });

test("a path with a newline is refused before anything is sent", async () => {
  const before = seat.host.commands.length;
  await assert.rejects(seat.remote.upload(of(join(place(), "a\nb"), Buffer.from("x"))), /newline/);
  assert.equal(seat.host.commands.length, before);
});

test("an older file is replaced; a link is replaced, not followed", async () => {
  const path = place();
  writeFileSync(join(path, "file"), "old");
  chmodSync(join(path, "file"), 0o666);
  writeFileSync(join(path, "aim"), "aim");
  symlinkSync("aim", join(path, "link"));
  await seat.remote.upload(of(join(path, "file"), Buffer.from("new")));
  await seat.remote.upload(of(join(path, "link"), Buffer.from("new")));
  assert.equal(readFileSync(join(path, "file"), "utf8"), "new");
  assert.equal(statSync(join(path, "file")).mode & 0o777, 0o600);
  assert.equal(readFileSync(join(path, "aim"), "utf8"), "aim");
  assert.equal(readFileSync(join(path, "link"), "utf8"), "new");
});

async function refused(work: Promise<void>): Promise<Error> {
  return work.then(
    () => assert.fail("it succeeded"),
    (error: unknown) => (error instanceof Error ? error : assert.fail(String(error))),
  );
}

const faults: readonly [name: string, upload: (to: string) => Upload, says: RegExp][] = [
  ["another checksum was announced", (to) => ({ ...of(to, body), sha256: "0".repeat(64) }), /not what was announced/],
  ["the file is shorter", (to) => ({ ...of(to, body), path: local(body.subarray(0, 100)) }), /100 bytes/],
  ["the file is empty", (to) => ({ ...of(to, body), path: local(Buffer.alloc(0)) }), /0 bytes/],
  ["the file is another", (to) => ({ ...of(to, body), path: local(randomBytes(9 * MiB)) }), /not what was announced/],
  ["the file is not there", (to) => ({ ...of(to, body), path: join(dir.path, "none") }), /could not be read: ENOENT/],
  ["the file cannot be read", (to) => ({ ...of(to, body), path: dir.path }), /could not be read: EISDIR/],
];

for (const way of ["near", "far"] as const)
  for (const [name, upload, says] of faults)
    test(`upload refused (${way}): ${name}`, async () => {
      const server = await startServer();
      try {
        const there = await connect(server.spec());
        await farAway(server, there, way === "far" ? 50 : 0);
        const path = place();
        writeFileSync(join(path, "file"), "old");
        assert.match((await refused(there.upload(upload(join(path, "file"))))).message, says);
        assert.deepEqual(readdirSync(path), ["file"]);
        assert.equal(readFileSync(join(path, "file"), "utf8"), "old");
      } finally {
        server.stop();
      }
    });

test("a missing folder is made, for its owner only", async () => {
  const to = join(dir.path, "none", "below", "file");
  await seat.remote.upload(of(to, Buffer.from("x")));
  assert.equal(readFileSync(to, "utf8"), "x");
  assert.equal(statSync(join(dir.path, "none")).mode & 0o777, 0o700);
});

test("a folder that cannot be made is named", async () => {
  writeFileSync(join(dir.path, "plain"), "");
  const error = await refused(seat.remote.upload(of(join(dir.path, "plain", "file"), Buffer.from("x"))));
  assert.ok(error instanceof RemoteError);
  assert.match(error.message, /m1.*upload .*plain\/file[\s\S]*plain/);
});

/** A shell whose stdin from the network passes through `change`, once or always. */
function tampering(change: (chunk: Buffer) => Buffer, times: number): ServerOptions {
  let left = times;
  return {
    exec: (channel, command) => {
      if (!command.includes("eval") || left-- <= 0) return realShell(channel, command);
      const child = spawn("/bin/sh", ["-c", command], { stdio: "pipe" });
      channel.on("data", (chunk: Buffer) => child.stdin.write(change(chunk)));
      channel.on("end", () => child.stdin.end());
      child.stdout.on("data", (chunk) => channel.write(chunk));
      child.stderr.on("data", (chunk) => channel.stderr.write(chunk));
      child.on("close", (code) => {
        channel.exit(code ?? 1);
        channel.end();
      });
    },
  };
}

const marked = Buffer.from(`${"a".repeat(5000)}MARK${"b".repeat(5000)}`);
const flip = (chunk: Buffer) => Buffer.from(chunk.toString("latin1").replace("MARK", "MaRK"), "latin1");

for (const [times, ok] of [
  [1, true],
  [2, false],
] as const)
  test(`content damaged on the way ${times} times is ${ok ? "sent again" : "refused"}`, async () => {
    const server = await startServer(tampering(flip, times));
    try {
      const file = join(place(), "file");
      const work = (await connect(server.spec())).upload(of(file, marked));
      if (ok) await work;
      else assert.match((await refused(work)).message, /arrived damaged, twice/);
      assert.equal(existsSync(file), ok);
    } finally {
      server.stop();
    }
  });

test("a connection that breaks in the middle: nothing half is left, and it is sent again", async () => {
  let broken = false;
  const cut = (channel: ServerChannel, command: string) => {
    if (broken || !command.includes("eval")) return realShell(channel, command);
    broken = true;
    let seen = 0;
    const connections = [...server.connections];
    channel.on("data", (chunk: Buffer) => {
      seen += chunk.length;
      if (seen > 100_000) for (const connection of connections) connection.end();
    });
    realShell(channel, command);
  };
  const server: TestServer = await startServer({ exec: cut });
  try {
    const path = place();
    await (await connect(server.spec())).upload(of(join(path, "file"), body));
    assert.ok(readFileSync(join(path, "file")).equals(body));
    assert.equal(server.logins(), 2);
  } finally {
    server.stop();
  }
});

test("a full disk is named with host and path, and leaves nothing", async () => {
  const server = await startServer({
    exec: (channel, command) =>
      realShell(channel, command.replace("exec timeout", "ulimit -f 64; trap '' XFSZ; exec timeout")),
  });
  try {
    const path = place();
    const error = await refused((await connect(server.spec())).upload(of(join(path, "file"), body)));
    assert.match(error.message, /m1: .*upload .*\/file[\s\S]*(too large|no space)/i);
    assert.deepEqual(readdirSync(path), []);
  } finally {
    server.stop();
  }
});

test("an upload can be cancelled", async () => {
  const abort = new AbortController();
  const server = await startServer({
    exec: (channel, command) => {
      if (!command.includes("eval")) return realShell(channel, command);
      abort.abort();
    },
  });
  try {
    const there = await connect(server.spec());
    const error = await refused(there.upload({ ...of(join(place(), "file"), body), signal: abort.signal }));
    assert.ok(error instanceof RemoteError);
    assert.equal(error.failure.reason, "cancelled");
  } finally {
    server.stop();
  }
});

test("no more than five uploads at once from one process", async () => {
  let open = 0;
  let most = 0;
  const servers = await Promise.all(
    Array.from({ length: 8 }, () =>
      startServer({
        exec: (channel, command) => {
          most = Math.max(most, ++open);
          channel.on("close", () => open--);
          realShell(channel, command);
        },
      }),
    ),
  );
  try {
    const path = place();
    await Promise.all(
      servers.map(async (server, i) =>
        (await connect(server.spec())).upload(of(join(path, String(i)), randomBytes(MiB))),
      ),
    );
    assert.equal(readdirSync(path).length, 8);
    assert.ok(most <= 5, String(most));
  } finally {
    for (const server of servers) server.stop();
  }
});
