import assert from "node:assert/strict";
import { test } from "node:test";
import { UserError } from "../../toolchain/errors.js";
import { type RunOptions, run } from "../../toolchain/process.js";

const sh = (script: string, options?: RunOptions) => run("sh", ["-c", script], options);

test("output, exit code and input arrive as they are", async () => {
  const { code, stdout, stderr } = await sh("cat; echo no >&2; exit 3", { input: "ä\nb", okCodes: [0, 3] });
  assert.deepEqual({ code, stdout, stderr }, { code: 3, stdout: "ä\nb", stderr: "no\n" });
});

test("lines are told one by one, the last one also without its end", async () => {
  const lines: string[] = [];
  await sh("printf 'a\\nb\\rc'; sleep 0.1; printf 'd'", { onLine: (line) => lines.push(line) });
  assert.deepEqual(lines, ["a", "b", "cd"]);
});

test("variables are laid over ours, and undefined takes one away", async () => {
  const { stdout } = await sh('echo "$ONE-${HOME-none}-${PATH:+path}"', { env: { ONE: "1", HOME: undefined } });
  assert.equal(stdout, "1-none-path\n");
});

for (const [what, call, message] of [
  ["a bad exit with its last words", () => sh("seq 1 30 >&2; exit 4"), /^sh -c .*: exit code 4\n11\n12\n[\d\n]*\n30$/],
  ["a bad exit that spoke on stdout only", () => sh("echo said; exit 1"), /exit code 1\nsaid$/],
  ["a signal", () => sh("kill -9 $$"), /ended by SIGKILL$/],
  ["a command that is not there", () => run("kubexm-no-such-thing", []), /^kubexm-no-such-thing: command not found$/],
  ["a folder that is not there", () => run("true", [], { cwd: "/no/such" }), /or no folder \/no\/such/],
  ["no end in time", () => sh("sleep 60", { timeoutMs: 100 }), /no end after 0\.1 s/],
] as const)
  test(`told clearly: ${what}`, () =>
    assert.rejects(call(), (error: Error) => {
      assert.match(error.message, message);
      return error instanceof UserError;
    }));

test("an abort ends the command and what it started", async () => {
  const stop = new AbortController();
  let grandchild = 0;
  const onLine = (line: string) => {
    grandchild = Number(line);
    stop.abort();
  };
  await assert.rejects(sh("sleep 60 & echo $!; wait", { onLine, signal: stop.signal }), /: stopped/);
  assert.notEqual(grandchild, 0);
  // Its output pipes are shut, or run() would not have ended; what is left is at most a zombie without a parent.
  const { stdout } = await run("ps", ["-o", "stat=", "-p", String(grandchild)], { okCodes: [0, 1] });
  assert.match(stdout, /^(Z.*\n)?$/);
});

test("our own end takes the command with it", async () => {
  const script = `require(${JSON.stringify(require.resolve("../../toolchain/process.js"))})
    .run("sh", ["-c", "echo $$; exec sleep 60"], { onLine: (pid) => { console.log(pid); process.exit(); } });`;
  const { stdout } = await run(process.execPath, ["-e", script]);
  const { stdout: state } = await run("ps", ["-o", "stat=", "-p", stdout.trim()], { okCodes: [0, 1] });
  assert.match(state, /^(Z.*\n)?$/);
});
