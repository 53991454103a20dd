import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { ClientChannel } from "ssh2";
import { capture, ending, lineSplitter, markers } from "../../provider/ssh/output";

const pieces = (text: string, size: number) => {
  const all = Buffer.from(text);
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.subarray(i * size, (i + 1) * size));
};

for (const size of [1, 2, 3, 5, 7, 4096])
  test(`characters stay whole in chunks of ${size} bytes`, () => {
    const text = "zażółć 漢字 🦀\n".repeat(50);
    const kept = capture(1 << 20);
    const lines: string[] = [];
    const splitter = lineSplitter((line) => lines.push(line));
    for (const piece of pieces(`${text}end`, size)) {
      kept.add(piece);
      splitter.add(piece);
    }
    splitter.end();
    assert.equal(kept.text(), `${text}end`);
    assert.deepEqual(lines, [...text.split("\n").slice(0, -1), "end"]);
  });

for (const size of [1, 9, 64, 1000])
  test(`of too much output head and tail are kept (chunks of ${size})`, () => {
    const kept = capture(100);
    const text = Array.from({ length: 1000 }, (_, i) => String(i % 10)).join("");
    for (const piece of pieces(text, size)) kept.add(piece);
    assert.equal(kept.text(), `${text.slice(0, 50)}\n… 900 bytes left out …\n${text.slice(-50)}`);
    assert.equal(kept.text(), kept.text());
  });

test("output of just the limit is whole", () => {
  const kept = capture(100);
  kept.add(Buffer.alloc(100, "x"));
  assert.equal(kept.text(), "x".repeat(100));
});

for (const size of [1, 4, 1000])
  test(`what login shells print before the script is kept apart (chunks of ${size})`, () => {
    const body: Buffer[] = [];
    const seen: string[] = [];
    const marked = markers(
      (name) => seen.push(name),
      (chunk) => body.push(chunk),
    );
    const text = "Welcome!\nno newline kubexm:password\nkubexm:elevated\nkubexm:begin\nkubexm:begin\nout\n";
    for (const piece of pieces(text, size)) marked.add(piece);
    assert.deepEqual(seen, ["password", "elevated", "begin"]);
    assert.equal(Buffer.concat(body).toString(), "kubexm:begin\nout\n");
    assert.equal(marked.noise(), "Welcome!");
    assert.equal(marked.begun(), true);
  });

test("a script that never began leaves what was printed instead", () => {
  const marked = markers(
    () => undefined,
    () => assert.fail("nothing may count as output"),
  );
  marked.add(Buffer.from("This account is\ncurrently not available."));
  assert.equal(marked.noise(), "This account is\ncurrently not available.");
  assert.equal(marked.begun(), false);
});

const ends: readonly [
  what: string,
  exit: unknown[] | undefined,
  close: unknown[],
  Awaited<ReturnType<typeof ending>["done"]>,
][] = [
  ["with a code", [3], [3], { code: 3, signal: undefined }],
  ["by a signal", [null, "SIGTERM"], [null, "SIGTERM"], { code: null, signal: "SIGTERM" }],
  ["with a code, before anybody listened", undefined, [3], { code: 3, signal: undefined }],
  ["by a signal, before anybody listened", undefined, [null, "SIGTERM"], { code: null, signal: "SIGTERM" }],
  ["with its connection", undefined, [], { code: undefined }],
];
for (const [what, exit, close, expected] of ends)
  test(`a command ends ${what}`, async () => {
    const channel = Object.assign(new PassThrough(), { stderr: new PassThrough(), close: () => undefined });
    const { done } = ending(
      channel as unknown as ClientChannel,
      () => undefined,
      () => undefined,
    );
    if (exit) channel.emit("exit", ...exit);
    channel.emit("close", ...close);
    assert.deepEqual(await done, expected);
  });
