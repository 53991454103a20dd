import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { labExec, withLab } from "../../lab/hosts.js";
import { snapshot } from "../../lab/snapshot.js";
import { changedSince } from "../harness/fault-run.js";
import { stackOf } from "../harness/settings.js";
import { run } from "../../toolchain/process.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";

const repo = join(__dirname, "..", "..", "..");
const examples = join(repo, "examples");
const main = join(repo, "dist", "cli", "main.js");
const cwd = mkdtempSync(join(tmpdir(), "kubexm-examples-"));
after(() => rmSync(cwd, { recursive: true, force: true }));
const env = { ...process.env, KUBEXM_PASSWORD: "x" };

const withFile = readdirSync(examples).filter((name) => existsSync(join(examples, name, "cluster.yaml")));

test("there are examples", () => assert.deepEqual(withFile.sort(), ["ha", "single-node"]));

for (const name of withFile)
  for (const verb of ["validate", "preview"])
    test(`examples/${name}: kubexm ${verb}`, async () => {
      const file = join(examples, name, "cluster.yaml");
      const { stdout, stderr } = await run(process.execPath, [main, verb, "-f", file], { cwd, env });
      const wanted = verb === "validate" ? /: 0 problems, 0 warnings\n$/ : /\d+ to create, 0 to change/;
      assert.match(stdout, wanted, stdout + stderr);
    });

test("the seeds' example: kubexm preview plans what there is, and up refuses what is not built", async () => {
  const file = join(repo, "test", "unit", "fixtures", "cluster-corrected.yaml");
  const told = await run(process.execPath, [main, "preview", "-f", file], { cwd, env });
  assert.match(told.stdout, /\d+ to create, 0 to change/, told.stdout + told.stderr);
  assert.match(told.stderr, /cluster-corrected\.yaml:\d+:\d+ spec\.kubernetes\.type: .*up refuses it/);
  const up = await run(process.execPath, [main, "up", "-f", file, "--yes"], { cwd, env, okCodes: [1] });
  assert.match(up.stderr, /nothing was changed:\n.*cluster-corrected\.yaml:\d+:\d+ spec\./);
});

/** A program in examples/, with a stack of its own. */
async function program(name: string, stack: string, config: Readonly<Record<string, string>>) {
  const folder = join(examples, name);
  const { env: tools } = await ensurePulumi();
  const state = mkdtempSync(join(cwd, "state-"));
  const all = { ...tools, PULUMI_BACKEND_URL: `file://${state}`, PULUMI_CONFIG_PASSPHRASE: "examples" };
  const flags = await stackOf({ folder, stack, place: join(cwd, `${name}-${stack}`), env: all }, config);
  return (...argv: string[]) => run("pulumi", [...argv, ...flags], { cwd: folder, env: all });
}

test("examples/typescript: the first preview, where no address is known", async () => {
  const pulumi = await program("typescript", "preview", {
    "machines.node1": "192.0.2.11",
    "machines.node2": "192.0.2.12",
    alone: "192.0.2.9",
  });
  const { stdout } = await pulumi("preview");
  for (const kind of ["node1-machine", "Preflight", "ClusterPreflight", "System", "Chrony", "Kernel"])
    assert.match(stdout, new RegExp(kind), stdout);
  assert.match(stdout, /\+ \d+ to create/);
});

test("examples/components: the first preview", async () => {
  const pulumi = await program("components", "preview", { address: "192.0.2.9" });
  const { stdout } = await pulumi("preview");
  for (const kind of ["Chrony", "Kernel"]) assert.match(stdout, new RegExp(`kubexm:${kind}`), stdout);
});

test("examples/cluster-file: the first preview of the file it is told", async () => {
  const file = join(examples, "single-node", "cluster.yaml");
  const pulumi = await program("cluster-file", "preview", { "kubexm:file": file });
  const { stdout } = await pulumi("preview");
  for (const kind of ["ClusterPreflight", "System"]) assert.match(stdout, new RegExp(`kubexm:${kind}`), stdout);
});

test("examples/typescript: machines and what comes onto them by one up, and back", async () => {
  await withLab({ hosts: 2, cwd }, async (lab) => {
    const [node, box] = lab.hosts;
    assert.ok(node?.privateKeyPath !== undefined && box);
    const before = await Promise.all([node, box].map((host) => snapshot(host)));
    const pulumi = await program("typescript", "apply", {
      "machines.node1": node.address,
      alone: box.address,
      privateKeyPath: node.privateKeyPath,
      knownHostsPath: lab.knownHostsPath,
      "kubernetes.type": "none",
    });
    await pulumi("up", "--yes", "--skip-preview");
    const { stdout } = await labExec(node, "grep -A2 'BEGIN KubeXM' /etc/hosts");
    assert.match(stdout, new RegExp(`${node.address} .*node1`));
    assert.match((await labExec(box, "cat /etc/modules-load.d/kubexm.conf")).stdout, /br_netfilter/);
    await pulumi("up", "--yes", "--skip-preview", "--expect-no-changes");
    await pulumi("destroy", "--yes", "--skip-preview");
    for (const [i, host] of [node, box].entries())
      assert.equal(await changedSince(before[i] ?? {}, host), "", host.name);
  });
});
