import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const examples = join(__dirname, "..", "..", "..", "examples");
const names = readdirSync(examples, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

/** What a person needs of it is there: a page, and a cluster file or a program with its project. */
for (const name of names)
  test(`examples/${name} has a page that says what it is, and what the page tells to run`, () => {
    const has = (...files: string[]) => files.every((file) => existsSync(join(examples, name, file)));
    assert.match(readFileSync(join(examples, name, "README.md"), "utf8"), /^# .*\n[^]*\n```\n(kubexm|npm|export) /);
    assert.ok(has("cluster.yaml") || has("index.ts", "Pulumi.yaml", "package.json", "tsconfig.json"));
  });
