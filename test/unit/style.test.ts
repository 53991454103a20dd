import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Linter } from "eslint";

interface Rule {
  selector: string;
  message: string;
}

const { shellTextRules, commandRule } = createRequire(__filename)(
  join(__dirname, "..", "..", "..", "eslint.config.mjs"),
) as {
  shellTextRules: Rule[];
  commandRule: Rule;
};

const complaints = (code: string) =>
  new Linter().verify(code, { rules: { "no-restricted-syntax": ["error", ...shellTextRules, commandRule] } });

describe("shell text by hand is refused by lint", () => {
  const rows: readonly [code: string, refused: boolean][] = [
    ["new Command(`rm ${path}`, `rm`)", true],
    ["new Command('rm ' + path, 'rm')", true],
    ["const text = ['rm', path].join(' '); new Command(text, text)", true],
    ["remote.run(`rm ${path}`)", true],
    ["client.exec(`rm ${path}`)", true],
    ["literal(`${path}`)", true],
    ["literal('rm ' + path)", true],
    ["literal(text)", true],
    ["literal('${d##*/}')", false],
    ["remote.run(sh`rm ${path}`)", false],
    ["client.exec(sh`rm ${path}`.text)", false],
  ];
  for (const [code, refused] of rows)
    test(`${code}: ${refused ? "refused" : "taken"}`, () => assert.equal(complaints(code).length > 0, refused));
});
