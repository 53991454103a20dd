import * as pulumi from "@pulumi/pulumi";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { clusterOf, configCommand, fileAndRest, valuesOf } from "../../cli/stack-config";
import { loadCluster } from "../../resources/modules/cluster-file";

const folder = mkdtempSync(join(tmpdir(), "kubexm-values-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const text = (leaves: string, workers = "[w1]") => `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: { name: prod }
spec:
  hosts:
    - { name: m1, address: 192.0.2.1 }
    - { name: w1, ${leaves} }
  roleGroups: { master: [m1], etcd: [m1], worker: ${workers} }
`;
const file = (content: string) => {
  const path = join(folder, "cluster.yaml");
  writeFileSync(path, content);
  return path;
};

beforeEach(async () => {
  await pulumi.runtime.setMocks({ newResource: () => ({ id: "", state: {} }), call: () => ({}) }, "kubexm", "prod");
  pulumi.runtime.setAllConfig({ "kubexm:pass": "hush", "kubexm:address": "192.0.2.7", "other:port": "2222" }, [
    "kubexm:pass",
  ]);
});

test("a program's cluster file takes values of the stack, other projects' by their full names", () => {
  const { spec } = loadCluster(
    file(text('address: "${config:address}", port: "${config:other:port}", password: "${config:pass}"')),
  );
  const { address, port, password } = { ...spec.hosts[1] };
  assert.deepEqual([address, port, password], ["192.0.2.7", 2222, "hush"]);
});

test("a secret of the stack's is refused where it would stand in the open", () =>
  assert.throws(
    () => loadCluster(file(text('address: "${config:pass}"'))),
    /is a secret, .* set pass without --secret/,
  ));

test("what Pulumi lists becomes values and the names of secrets", () =>
  assert.deepEqual(
    valuesOf({ "kubexm:pass": { value: "hush", secret: true }, "other:port": { value: "1", secret: false } }),
    {
      config: { "kubexm:pass": "hush", pass: "hush", "other:port": "1" },
      secrets: ["kubexm:pass", "pass"],
    },
  ));

test("a file without such places is read without asking Pulumi; its warnings come with it", async () => {
  const { name, warnings } = await clusterOf(file(text("address: 192.0.2.2", "[]")));
  assert.equal(name, "prod");
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /cluster\.yaml:7:15 spec\.hosts\[1\]\.name: "w1": warning: /);
});

test("kubexm preflight: a file that cannot be read, or is wrong, is told with exit code 2", () => {
  const main = join(__dirname, "..", "..", "cli", "main.js");
  const preflight = (path: string) =>
    spawnSync(process.execPath, [main, "preflight", "-f", path], { encoding: "utf8" });
  const none = preflight(join(folder, "none.yaml"));
  assert.deepEqual([none.status, none.stdout], [2, ""]);
  assert.match(none.stderr, /there is no such file/);
  const wrong = preflight(file(text("adress: 192.0.2.2")));
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /adress: is not a key/);
});

test("kubexm config: the file is named anywhere, all else is Pulumi's", () => {
  const rows: [readonly string[], string, readonly string[]][] = [
    [["set", "a", "b"], "cluster.yaml", ["set", "a", "b"]],
    [["-f", "x.yaml", "set", "a", "b"], "x.yaml", ["set", "a", "b"]],
    [["get", "a", "-f", "x.yaml"], "x.yaml", ["get", "a"]],
    [["--file=x.yaml", "get", "a"], "x.yaml", ["get", "a"]],
    [["set", "a", "--file", "x.yaml", "--secret"], "x.yaml", ["set", "a", "--secret"]],
    [["set", "a", "--", "-f"], "cluster.yaml", ["set", "a", "--", "-f"]],
  ];
  for (const [argv, file, rest] of rows) assert.deepEqual(fileAndRest(argv), { file, rest }, argv.join(" "));
  for (const argv of [["get", "a", "-f"], ["--file="]])
    assert.throws(() => fileAndRest(argv), /needs a cluster file after it/, argv.join(" "));
});

test("a name without a value, and not said to be a secret, is refused before anything is asked", async () => {
  for (const words of [["set", "pass"], ["set", "--plaintext", "pass", "-f", "other.yaml"], ["set"]])
    await assert.rejects(configCommand(words), /write --secret before the name/);
});
