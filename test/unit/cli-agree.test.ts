import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { agreed, refuseUnasked } from "../../cli/agree.js";

/** What becomes of a question when this is typed on a terminal. */
async function typed(keys: string): Promise<boolean | string> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const answer = agreed("Sure?", { input, output, terminal: true });
  input.write(keys);
  return answer.catch((error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error)));
}

for (const [what, keys, want] of [
  ["y", "y\r", true],
  ["Yes", " Yes \r", true],
  ["nothing", "\r", false],
  ["another word", "yesterday\r", false],
  ["^D, the end of the input", "\x04", false],
  // What cli/exit.ts makes exit code 130 of.
  ["^C", "\x03", "Error: SIGINT"],
] as const)
  test(`the answer to a question: ${what}`, async () => assert.equal(await typed(keys), want));

test("where nobody can be asked, --yes has to be said", () => {
  refuseUnasked("prod", true);
  assert.throws(() => refuseUnasked("prod", false), { name: "UserError", message: /"prod".*add --yes/ });
});
