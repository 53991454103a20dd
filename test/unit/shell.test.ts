import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { inspect } from "node:util";
import { RemoteError } from "../../provider/errors";
import { Command, Secret, lines, quote, sh, verbatim, word } from "../../provider/shell";
import { seeded } from "../harness/seeded";

const scratch = mkdtempSync(join(tmpdir(), "kubexm-shell-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const canary = join(scratch, "canary");
const unharmed = () => {
  assert.ok(!existsSync(canary), "something was interpreted");
  assert.deepEqual(readdirSync(scratch), [], "a file came about");
};

/** What a real `sh` in the scratch folder prints for a script that comes by stdin, as over SSH. */
const run = (script: Command) =>
  execFileSync("/bin/sh", ["-s"], { input: script.text, cwd: scratch, maxBuffer: 16e6 }).toString();

const odd: readonly string[] = [
  "",
  " ",
  "'",
  '"',
  "''",
  "\\",
  "\\'",
  "$",
  "$$",
  "$HOME",
  "${HOME}",
  "`touch canary`",
  "$(touch canary)",
  "'$(touch canary)'",
  "'; touch canary; '",
  '"; touch canary; "',
  "; touch canary",
  "| touch canary",
  "&& touch canary",
  "> canary",
  "\ntouch canary\n",
  "\n",
  "ends with newline\n",
  "\r\n",
  "\t",
  "-rf",
  "--",
  "-oProxyCommand=touch canary",
  "../../canary",
  "*",
  "?",
  "[a-z]*",
  "~",
  "~root",
  "!!",
  "#no comment",
  "a=b",
  "{a,b}",
  "KX_CONTENT",
  "EOF",
  "ünïcode 中文 🚢",
  "\u202eright to left",
  "\u0001\u001b[31m\u007f",
  "%s%n",
  "a b  c",
  "0",
];

const alphabet = Array.from("'\"\\$`;&|<>(){}[]*?!#~=%-/ \n\t\rabc0é中🚢");

describe("quoting through a real sh", () => {
  test("each odd text arrives as one word, byte for byte", () => {
    for (const text of odd) assert.equal(run(sh`printf %s ${text}`), text, JSON.stringify(text));
    unharmed();
  });
  test("all odd texts at once stay apart", () => {
    const got = run(sh`for word in ${odd}; do printf '%s\0' "$word"; done`);
    assert.deepEqual(got.split("\0").slice(0, -1), odd);
    unharmed();
  });
  test("random texts of what means something to a shell", () => {
    const random = seeded("shell");
    const texts = Array.from({ length: 500 }, () =>
      Array.from({ length: random.below(40) }, () => alphabet[random.below(alphabet.length)] ?? "").join(""),
    );
    const got = run(sh`for word in ${texts}; do printf '%s\0' "$word"; done`);
    assert.deepEqual(got.split("\0").slice(0, -1), texts, `seed ${random.seed}`);
    unharmed();
  });
  test("1 MB", () => {
    const big = "it's $(touch canary) ".repeat(50_000);
    assert.equal(run(sh`printf %s ${big}`), big);
    unharmed();
  });
  test("as names of files: made and found, nothing else", () => {
    const names = odd.filter((text) => text !== "" && !text.includes("/"));
    run(sh`mkdir names && cd names && for name in ${names}; do : >"./$name"; done`);
    assert.deepEqual(readdirSync(join(scratch, "names")).sort(), [...names].sort());
    rmSync(join(scratch, "names"), { recursive: true });
    unharmed();
  });
  test("in a command inside a command inside a list of commands", () => {
    for (const text of odd) {
      const inner = sh`printf %s ${text}`;
      assert.equal(run(lines(sh`:`, sh`sh -c ${inner.text}`)), text);
      assert.equal(run(sh`x=$(${inner}; echo .); printf %s "$x"`), `${text}.`);
    }
    unharmed();
  });
  test("a NUL, which no shell can carry, is refused", () => {
    assert.throws(() => quote("a\0b"), /NUL/);
    assert.throws(() => sh`echo ${["fine", "a\0b"]}`, /NUL/);
  });
  test("numbers and plain words are not quoted, so that scripts stay readable", () => {
    assert.equal(sh`timeout ${5} ls ${"/etc/a-b_c.d"} ${["x", 1]}`.text, "timeout 5 ls /etc/a-b_c.d x 1");
  });
  test("verbatim text cannot end its here-document, a bare word is bare", () => {
    assert.throws(() => verbatim("a\nSTOP\nb", "STOP"), /STOP/);
    assert.equal(verbatim("a\n STOP\nb", "STOP").text, "a\n STOP\nb");
    for (const text of ["a b", "a;b", "$x", "", "a-b"]) assert.throws(() => word(text), /bare word/);
  });
});

describe("secrets", () => {
  const value = "pa$$ 'w' \"ord\" \\ \n中";
  const secret = new Secret(value);
  const command = lines(sh`login ${secret}`, sh`echo ${[secret, "b"]}`, sh`${sh`nested ${secret}`}`);
  const printed: readonly [string, () => string][] = [
    ["String", () => String(secret)],
    ["template", () => String(secret)],
    ["JSON", () => JSON.stringify({ deep: [secret] })],
    ["inspect", () => inspect({ deep: { secret } }, { depth: 9, showHidden: true })],
    ["keys", () => JSON.stringify(Object.entries(secret))],
    ["command as String", () => String(command)],
    ["command as JSON", () => JSON.stringify({ command })],
    ["command inspected", () => inspect({ command }, { depth: 9, showHidden: true })],
    ["an error about the command", () => inspect(new Error(`failed: ${String(command)}`, { cause: { command } }))],
    [
      "an error of a host",
      () =>
        inspect(
          new RemoteError("failed", {
            host: "h",
            reason: "exit",
            command: String(command),
            stderr: command.redact(`sh: ${value}: not found`),
          }),
        ),
    ],
  ];
  for (const [name, print] of printed)
    test(`not in ${name}`, () => {
      const text = print();
      for (const part of [value, quote(value), "ord"]) assert.ok(!text.includes(part), text);
    });
  test("but on the wire", () => {
    assert.equal(run(sh`printf %s ${secret}`), value);
    assert.equal(command.text.split(quote(value)).length - 1, 3);
  });
  test("redact takes every secret of every part out, and only those", () => {
    assert.equal(command.redact("nothing here"), "nothing here");
    assert.equal(sh`a ${new Secret("")}`.redact("abc"), "abc");
    assert.equal(sh`a ${new Secret("one")} ${new Secret("two")}`.redact("one two three"), "*** *** three");
  });
  test("of a command are known to what it becomes part of", () => {
    assert.deepEqual(command.secrets, [value, value, value]);
    assert.deepEqual(new Command("x", "x").secrets, []);
  });
});
