import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { lines, Secret, sh } from "../../provider/shell";
import { connect } from "../../provider/ssh";
import { wrap } from "../../provider/ssh/exec";
import { STDOUT_LIMIT } from "../../provider/ssh/output";
import { commandText } from "../../provider/ssh/sudo";
import { refusal } from "../harness/refusal";
import { sshSeat } from "../harness/ssh-seat";
import { realShell, startServer } from "./ssh-server";

const seat = sshSeat();
const { dir } = seat;

const odd = 'a\'b "c" $(touch x) `y` \\ \n $HOME ; é漢🦀 -e';

const results: readonly [name: string, script: ReturnType<typeof sh>, want: { stdout?: string; stderr?: string }][] = [
  ["output", sh`echo out; echo err >&2`, { stdout: "out\n", stderr: "err\n" }],
  ["nothing", sh``, { stdout: "", stderr: "" }],
  ["only a comment", sh`# nothing`, { stdout: "" }],
  ["no newline", sh`printf x`, { stdout: "x" }],
  ["odd text", sh`printf %s ${odd}`, { stdout: odd }],
  ["secret", sh`printf %s ${new Secret("s3cret")}`, { stdout: "s3cret" }],
  ["commands cannot eat the script", sh`cat; cat >/dev/null; echo still`, { stdout: "still\n" }],
  ["here document", lines(sh`cat <<'EOF'`, sh`a $b`, sh`EOF`, sh`echo c`), { stdout: "a $b\nc\n" }],
  ["locale and path", sh`echo "$LC_ALL"; case ":$PATH:" in *:/usr/sbin:*) echo sbin;; esac`, { stdout: "C\nsbin\n" }],
  ["a line that looks like our marker", sh`echo kubexm:begin; echo x`, { stdout: "kubexm:begin\nx\n" }],
  ["functions and loops", sh`f() { echo "$1"; }; for i in 1 2; do f $i; done`, { stdout: "1\n2\n" }],
  ["an early good end", sh`echo a; exit 0; echo b`, { stdout: "a\n" }],
];

for (const [name, script, want] of results)
  test(`run: ${name}`, async () => {
    const result = await seat.remote.run(script);
    assert.equal(result.code, 0);
    assert.deepEqual({ ...result, ...want }, result);
  });

test("the whole script arrives, whatever its length", async () => {
  const big = "z".repeat(1_000_000);
  assert.equal((await seat.remote.run(sh`x=${big}; printf %s "$x" | wc -c`)).stdout.trim(), "1000000");
});

const failures: readonly [name: string, script: ReturnType<typeof sh>, code: number, says: RegExp][] = [
  ["exit code", sh`echo no >&2; exit 3`, 3, /exit code: 3[\s\S]*no/],
  ["last command", sh`false`, 1, /false/],
  ["set -e", sh`set -e; false; echo not here`, 1, /set -e/],
  ["command not found", sh`no-such-command`, 127, /not found/],
  ["syntax error: nothing of it is run", sh`touch ${join(dir.path, "half")}; if true`, 2, /[Ss]yntax error/],
];

for (const [name, script, code, says] of failures)
  test(`run fails: ${name}`, async () => {
    const error = await refusal(seat.remote.run(script), "exit");
    assert.equal(error.failure.code, code);
    assert.equal(error.failure.host, "m1");
    assert.match(error.message, says);
    assert.equal(existsSync(join(dir.path, "half")), false);
  });

test("other exit codes can be good", async () => {
  assert.equal((await seat.remote.run(sh`exit 3`, { ok: [0, 3] })).code, 3);
  await refusal(seat.remote.run(sh`:`, { ok: [3] }), "exit");
});

test("half a script, as after a lost connection, does nothing", () => {
  const path = join(dir.path, "cut");
  const whole = commandText("user", "script", 10, "kubexm-0");
  assert.match(whole, /^exec timeout -k 10 10 \/bin\/sh -s kubexm-0$/);
  for (const cut of [0.5, 0.9, 0.99]) {
    const text = wrapped(path);
    spawnSync("/bin/sh", ["-s"], { input: text.slice(0, Math.floor(text.lastIndexOf("}") * cut)) });
    assert.equal(existsSync(path), false, `cut at ${cut}`);
  }
  spawnSync("/bin/sh", ["-s"], { input: wrapped(path) });
  assert.equal(existsSync(path), true);
});

function wrapped(path: string): string {
  return wrap(sh`touch ${path}; echo ${"x".repeat(1000)}`);
}

test("a killed shell is a failure with the signal's name", async () => {
  const host = await startServer({
    exec: (channel) => {
      channel.write("kubexm:begin\n");
      channel.exit("TERM", false, "");
      channel.end();
    },
  });
  try {
    const error = await refusal((await connect(host.spec())).run(sh`:`), "signal");
    assert.equal(error.failure.signal, "SIGTERM");
  } finally {
    host.stop();
  }
});

test("a command that takes too long is ended on the host", async () => {
  const marker = join(dir.path, "late");
  const error = await refusal(seat.remote.run(sh`sleep 2; touch ${marker}`, { timeout: 1 }), "timeout");
  assert.match(error.message, /not done within 1 s/);
  assert.equal((await seat.remote.run(sh`sleep 1.5; [ -e ${marker} ] || echo none`)).stdout, "none\n");
});

test("a host that does not end it is left", async (t) => {
  const deaf = await startServer({ exec: (channel) => channel.write("kubexm:begin\nhere\n") });
  try {
    const remote = await connect(deaf.spec());
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const onLine = () => t.mock.timers.tick(16_000);
    assert.match((await refusal(remote.run(sh`:`, { timeout: 1, onLine }), "timeout")).message, /not done within 1 s/);
  } finally {
    deaf.stop();
  }
});

test("a result of 124 that came early is no timeout", async () => {
  assert.equal((await refusal(seat.remote.run(sh`exit 124`), "exit")).failure.code, 124);
});

test("cancelling ends the command on the host", async () => {
  const abort = new AbortController();
  const marker = join(dir.path, "alive");
  const script = sh`while :; do touch ${marker}; sleep 0.05; done`;
  const work = refusal(seat.remote.run(script, { signal: abort.signal }), "cancelled");
  while (!existsSync(marker)) await new Promise((resolve) => setTimeout(resolve, 20));
  abort.abort();
  await work;
  const seen = await seat.remote.run(sh`sleep 0.2; rm -f ${marker}; sleep 0.3; [ -e ${marker} ] || echo quiet`);
  assert.equal(seen.stdout, "quiet\n");
});

test("what is cancelled before its turn never starts", async () => {
  const abort = new AbortController();
  const marker = join(dir.path, "never");
  const busy = Array.from({ length: 4 }, () => seat.remote.run(sh`sleep 0.3`));
  const work = refusal(seat.remote.run(sh`touch ${marker}`, { signal: abort.signal }), "cancelled");
  abort.abort();
  await work;
  await Promise.all(busy);
  await seat.remote.run(sh`:`);
  assert.equal(existsSync(marker), false);
  await refusal(seat.remote.run(sh`touch ${marker}`, { signal: abort.signal }), "cancelled");
});

test("a daemon that keeps the channel open does not keep the result", async () => {
  const pid = (await seat.remote.run(sh`sleep 60 & echo $!`)).stdout.trim();
  assert.equal((await seat.remote.run(sh`kill ${pid} && echo alive`)).stdout, "alive\n");
});

test("unread floods end, and leave head and tail", async () => {
  const result = await seat.remote.run(sh`echo first; head -c 40000000 /dev/zero | tr '\000' x; echo; echo last`);
  assert.ok(result.stdout.length < STDOUT_LIMIT + 100);
  assert.ok(result.stdout.startsWith("first\nxxx") && result.stdout.endsWith("x\nlast\n"));
  assert.match(result.stdout, /\d+ bytes left out/);
  const errors = await seat.remote.run(sh`head -c 5000000 /dev/zero | tr '\000' x >&2; echo done`);
  assert.equal(errors.stdout, "done\n");
});

test("lines are told as they come", async () => {
  const seen: string[] = [];
  const abort = new AbortController();
  const work = seat.remote.run(sh`echo one; printf two; echo; printf three; while :; do sleep 0.05; done`, {
    signal: abort.signal,
    onLine: (line) => {
      seen.push(line);
      if (line === "two") abort.abort();
    },
  });
  await refusal(work, "cancelled");
  assert.deepEqual(seen.slice(0, 2), ["one", "two"]);
});

test("noise of login shells is not output", async () => {
  const noisy = await startServer({
    exec: (channel, command) => {
      channel.write("Welcome to the machine\n");
      realShell(channel, command);
    },
  });
  try {
    assert.equal((await (await connect(noisy.spec())).run(sh`echo x`)).stdout, "x\n");
  } finally {
    noisy.stop();
  }
});

test("an account without a usable shell is told with its own words", async () => {
  const nologin = await startServer({
    exec: (channel) => {
      channel.write("This account is currently not available.\n");
      channel.exit(0);
      channel.end();
    },
  });
  try {
    const error = await refusal((await connect(nologin.spec())).run(sh`echo x`), "channel");
    assert.match(error.message, /not available/);
  } finally {
    nologin.stop();
  }
});

test("no secret is in the command line, and none in errors", async () => {
  const canary = "canary-4711";
  const error = await refusal(
    seat.remote.run(sh`cat /proc/$$/cmdline; echo ${new Secret(canary)} >/dev/null; exit 5`),
    "exit",
  );
  assert.ok(!error.message.includes(canary));
  assert.ok(!seat.host.commands.join("\n").includes(canary));
});
