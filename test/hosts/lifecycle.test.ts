import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalWorkspace, type Stack } from "@pulumi/pulumi/automation";
import { anyLabName, labClusterYaml, labDown, labExec, labUp, type Lab, type LabHost } from "../../lab/hosts";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import { Host } from "../../provider/host";
import { run } from "../../toolchain/process";
import { ensurePulumi } from "../../toolchain/pulumi";
import { boxFiles, FaultBox, given } from "../harness/fault-box";
import { changedSince, tally, tell } from "../harness/fault-run";
import { seeded } from "../harness/seeded";
import { killTree } from "../harness/whole-tree";

const NAME = anyLabName();
const scratch = mkdtempSync(join(tmpdir(), "kubexm-lifecycle-"));
const repo = join(__dirname, "..", "..", "..");
const files = boxFiles(scratch);

describe("whole runs", () => {
  let lab: Lab;
  let byKey: LabHost;
  let byPassword: LabHost;
  const whole = new Map<LabHost, Snapshot>();
  before(async () => {
    lab = await labUp({
      name: NAME,
      hosts: ["key", { name: "pw", user: "ops", login: "password", sudo: "password" }],
      keep: false,
    });
    const [first, second] = lab.hosts;
    assert.ok(first && second);
    [byKey, byPassword] = [first, second];
    for (const host of lab.hosts) {
      await labExec(host, given);
      whole.set(host, await snapshot(host));
    }
  });
  after(async () => {
    await labDown(NAME);
    rmSync(scratch, { recursive: true, force: true });
  });
  const asBefore = async () => {
    for (const [host, then] of whole) assert.equal(await changedSince(then, host), "", host.name);
  };

  test("kubexm up killed with all it started, three times; up and destroy go on from there", async () => {
    const cwd = join(scratch, "cli");
    mkdirSync(cwd);
    writeFileSync(
      join(cwd, "cluster.yaml"),
      labClusterYaml({ ...lab, hosts: [byKey] }, { kubernetes: { type: "none" } }),
    );
    const start = (verb: string, ...flags: string[]) => {
      const main = join(repo, "dist", "cli", "main.js");
      const child = spawn(process.execPath, [main, verb, "-f", "cluster.yaml", ...flags], {
        cwd,
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
      const said: string[] = [];
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => said.push(text));
      return { child, said, ended: once(child, "exit").then(([code]) => code as number | null) };
    };
    const runs = async (verb: string, ...flags: string[]) => {
      const { said, ended } = start(verb, ...flags);
      const code = await ended;
      assert.equal(code, 0, said.join(""));
      return said.join("");
    };
    // Whose turn it is on the host; "free" when nobody is at work.
    const turn = async () =>
      (await labExec(byKey, "if flock -n /run/kubexm.lock true; then echo free; else cat /run/kubexm.lock; fi")).stdout;
    const random = seeded("whole runs");
    const counts = tally();
    const strike = async (verb: string): Promise<boolean> => {
      const earlier = await turn();
      const { child, ended, said } = start(verb, ...(verb === "destroy" ? ["--yes"] : []));
      // Not before something happens on the host.
      for (let i = 0; i < 1200 && child.exitCode === null; i++) {
        const now = await turn();
        if (!now.startsWith("free") && now !== earlier) break;
        await sleep(50);
      }
      await sleep(random.below(1500));
      const struck = child.exitCode === null && child.pid !== undefined && killTree(child.pid) >= 3;
      const code = await ended;
      if (!struck) assert.equal(code, 0, said.join(""));
      return struck;
    };
    for (const verb of ["up", "up", "up", "destroy"]) {
      counts.tried++;
      // One that came to its end before the blow is taken back, and tried again.
      for (let tries = 0; !(await strike(verb)); tries++) {
        assert.ok(tries < 8, `${verb} was always faster than the blow`);
        if (verb === "up") await runs("destroy", "--yes");
        else await runs("up");
      }
      counts.struck++;
    }
    await runs("up");
    assert.match(await runs("up"), /nothing|no change|unchanged|as wanted/i);
    counts.converged = counts.tried;
    await runs("destroy", "--yes");
    await asBefore();
    counts.reverted = counts.tried;
    tell("kubexm and pulumi killed together", counts);
    assert.equal(counts.struck, counts.tried);
  });

  test("20 secrets: on the host where they belong, and nowhere else", async () => {
    const project = join(scratch, "project");
    const state = join(scratch, "state");
    const runLog = join(scratch, "run.jsonl");
    const pkg = join(project, "node_modules", "kubexm");
    for (const dir of [state, pkg, join(project, "node_modules", "@pulumi")]) mkdirSync(dir, { recursive: true });
    symlinkSync(
      dirname(require.resolve("@pulumi/pulumi/package.json")),
      join(project, "node_modules", "@pulumi", "pulumi"),
    );
    // Stands for the package, with the test's own component in it.
    writeFileSync(join(pkg, "package.json"), '{"name":"kubexm","exports":{"./provider":"./provider.js"}}');
    writeFileSync(
      join(pkg, "provider.js"),
      ["test/harness/fault-box", "provider/dynamic"]
        .map((path) => `Object.assign(exports, require(${JSON.stringify(join(repo, "dist", path))}));`)
        .join("\n"),
    );
    const canary = () => `canary-${randomBytes(9).toString("hex")}`;
    const [before, later] = [Array.from({ length: 9 }, canary), Array.from({ length: 9 }, canary)];
    const password = byPassword.password ?? "";
    const key = readFileSync(lab.privateKeyPath, "utf8");
    const keyLine = key.split("\n")[2] ?? "";
    const canaries = [...before, ...later, password, keyLine];
    assert.ok(canaries.every((text) => text.length >= 12) && canaries.length === 20);

    const { bin, env } = await ensurePulumi();
    const path = process.env["PATH"] ?? "";
    process.env["PATH"] = `${bin}:${path}`;
    let [secret, folder] = [before.join("\n"), "/usr/local/bin"];
    const common = { knownHostsPath: lab.knownHostsPath };
    const program = () => {
      const hosts = [
        new Host("key", { address: byKey.address, user: "root", privateKey: key, ...common }),
        new Host("pw", { address: byPassword.address, user: "ops", password, sudoPassword: password, ...common }),
      ];
      for (const host of hosts) new FaultBox(`box-${host.name}`, { host, version: "1", ...files, secret, folder });
      return Promise.resolve();
    };
    const output: string[] = [];
    const pulumiEnv = {
      ...env,
      PATH: process.env["PATH"],
      PULUMI_BACKEND_URL: `file://${state}`,
      PULUMI_CONFIG_PASSPHRASE: "p",
      KUBEXM_RUN_LOG: runLog,
    };
    const stack: Stack = await LocalWorkspace.createOrSelectStack(
      { stackName: "secrets", projectName: "faults", program },
      {
        workDir: project,
        projectSettings: { name: "faults", runtime: { name: "nodejs", options: { typescript: false } }, main: project },
        envVars: pulumiEnv,
      },
    );
    const options = {
      onOutput: (text: string) => void output.push(text),
      onError: (text: string) => void output.push(text),
    };

    // While it runs: what every process of the hosts was started with, many times a second.
    const watched = [byKey, byPassword];
    for (const host of watched)
      await labExec(
        host,
        `cat >/run/canaries; (echo canary-of-the-watch; while [ -e /run/canaries ]; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -aFf /run/canaries >>/run/hits; sleep 0.02; done) >/dev/null 2>&1 &`,
        { input: `${canaries.join("\n")}\n` },
      );
    await labExec(byKey, `sh -c 'sleep 1; :' '${before[0] ?? ""}'`);
    assert.match((await labExec(byKey, "cat /run/hits; : >/run/hits")).stdout, /canary/, "the watch sees");

    await stack.preview(options);
    await stack.up(options);
    for (const host of watched)
      assert.ok((await labExec(host, "cat /etc/kxf.key")).stdout.includes(before[0] ?? "?"), "it is on the host");
    secret = later.join("\n");
    folder = "/proc/nowhere";
    await assert.rejects(stack.up(options), /proc\/nowhere/);
    folder = "/usr/local/bin";
    await labExec(byKey, "echo drifted >/etc/kxf.key");
    await stack.up({ ...options, refresh: true });
    // The SDK's own export shows secrets; what people run does not.
    const { stdout: exported } = await run(join(bin, "pulumi"), ["stack", "export", "--stack", "secrets"], {
      cwd: project,
      env: pulumiEnv,
    });
    assert.match(exported, /ciphertext/);
    const ledgers = await Promise.all(
      watched.map((host) =>
        labExec(host, "cat $(find /var/lib/kubexm /tmp /var/tmp /var/log /run -type f ! -name canaries)"),
      ),
    );
    const journals = await Promise.all(watched.map((host) => labExec(host, "journalctl --no-pager -o cat")));
    await stack.destroy(options);
    const hits = await Promise.all(
      watched.map((host) => labExec(host, "rm /run/canaries; cat /run/hits; rm /run/hits")),
    );
    process.env["PATH"] = path;

    const stateFiles = readdirSync(state, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
    const places: Readonly<Record<string, string>> = {
      "output of pulumi": output.join(""),
      "stack export": exported,
      "state files": stateFiles.join("\n"),
      "run log": readFileSync(runLog, "utf8"),
      "ledger, /tmp, /var/log, /run": ledgers.map(({ stdout }) => stdout).join("\n"),
      journal: journals.map(({ stdout }) => stdout).join("\n"),
      "command lines and environments": hits.map(({ stdout }) => stdout).join("\n"),
    };
    assert.match(places["output of pulumi"] ?? "", /FaultBox/);
    assert.match(places["run log"] ?? "", /kxf\.key/);
    const found = Object.entries(places).flatMap(([place, text]) =>
      canaries.flatMap((one, i) => (text.includes(one) ? [`canary ${i} in ${place}`] : [])),
    );
    assert.deepEqual(found, []);
    await asBefore();
  });
});
