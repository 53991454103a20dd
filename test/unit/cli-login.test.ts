import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loginAdvice, otherBackend } from "../../cli/login.js";

const root = mkdtempSync(join(tmpdir(), "kubexm-login-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** A home of Pulumi's with this in its file of logins. */
function home(name: string, text?: string): string {
  const dir = join(root, name);
  mkdirSync(dir);
  if (text !== undefined) writeFileSync(join(dir, "credentials.json"), text);
  return dir;
}

const token = { PULUMI_ACCESS_TOKEN: "t" };
for (const [what, text, env, want] of [
  ["nobody logged in", undefined, {}, undefined],
  ["logged out", '{"current":""}', {}, undefined],
  ["logged in to a bucket", '{"current":"s3://states"}', {}, "s3://states"],
  ["a file that cannot be read", "{", {}, undefined],
  ["a token", undefined, token, "https://api.pulumi.com"],
  ["a token for a service of one's own", undefined, { ...token, PULUMI_API: "https://p.example" }, "https://p.example"],
  ["a token, and logged in elsewhere", '{"current":"s3://states"}', token, "s3://states"],
  ["a backend by name", '{"current":"s3://states"}', { PULUMI_BACKEND_URL: "file:///x" }, undefined],
] as const)
  test(`a login that is not used: ${what}`, () =>
    assert.equal(otherBackend({ PULUMI_HOME: home(what.replaceAll(" ", "-"), text), ...env }), want));

test("a login that is not used is told in one line, with where the state is and what uses the login", () => {
  const line = loginAdvice("/c/state", { PULUMI_HOME: home("none"), ...token });
  assert.equal(
    line,
    "your Pulumi login (https://api.pulumi.com) is not used, the state is in /c/state: set PULUMI_BACKEND_URL=https://api.pulumi.com to keep it there",
  );
  assert.equal(loginAdvice("/c/state", { PULUMI_HOME: home("no one") }), undefined);
});
