import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { type Lab, labExec, withLab } from "../../lab/hosts.js";
import { run } from "../../toolchain/process.js";
import { ensurePulumi } from "../../toolchain/pulumi.js";

const repo = join(__dirname, "..", "..", "..");
const temporary = mkdtempSync(join(tmpdir(), "kubexm-contract-"));
const STACK = "contract";

after(() => rmSync(temporary, { recursive: true, force: true }));

interface Place {
  name: string;
  /** Makes the place ready and gives how a verb is said there. */
  ready: (clusterYaml: string, env: Record<string, string>) => Promise<Place["say"]>;
  say: (verb: string, flags: readonly string[]) => { cwd: string; argv: readonly string[] };
}

type Verb = (verb: string, flags?: readonly string[], code?: number) => Promise<string>;

/** Plain Pulumi on the program in a folder. */
async function pulumiIn(cwd: string, clusterYaml: string, env: Record<string, string>): Promise<Place["say"]> {
  const settings = join(cwd, `Pulumi.${STACK}.yaml`);
  after(() => rmSync(settings, { force: true }));
  await run("pulumi", ["stack", "init", STACK, "--non-interactive"], { cwd, env });
  await run("pulumi", ["config", "set", "--stack", STACK, "kubexm:file", clusterYaml], { cwd, env });
  const go: Record<string, readonly string[]> = {
    preview: [],
    up: ["--yes", "--skip-preview"],
    destroy: ["--yes", "--skip-preview"],
  };
  return (verb, flags) => ({
    cwd,
    argv: ["pulumi", verb, "--stack", STACK, "--non-interactive", ...(go[verb] ?? []), ...flags],
  });
}

/** A project of somebody else's, which has the packed package and nothing of this clone. */
async function scratchProject(): Promise<string> {
  const dir = join(temporary, "project");
  mkdirSync(dir);
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", temporary], {
    cwd: repo,
  });
  const example = join(repo, "examples", "cluster-file");
  for (const file of ["Pulumi.yaml", "index.ts", "tsconfig.json"]) cpSync(join(example, file), join(dir, file));
  const manifest = JSON.parse(readFileSync(join(example, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  manifest.dependencies["kubexm"] = `file:${join(temporary, stdout.trim())}`;
  writeFileSync(join(dir, "package.json"), JSON.stringify(manifest));
  await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: dir });
  return dir;
}

const PLACES: readonly Pick<Place, "name" | "ready">[] = [
  { name: "this repository's program", ready: (file, env) => pulumiIn(repo, file, env) },
  { name: "a program in examples/", ready: (file, env) => pulumiIn(join(repo, "examples", "cluster-file"), file, env) },
  {
    name: "a project with the packed package",
    ready: async (file, env) => pulumiIn(await scratchProject(), file, env),
  },
  {
    name: "the kubexm command",
    ready: (file) => {
      const go: Record<string, readonly string[]> = { preview: [], up: ["--yes"], destroy: ["--yes"] };
      const main = join(repo, "dist", "cli", "main.js");
      return Promise.resolve((verb: string, flags: readonly string[]) => ({
        cwd: temporary,
        argv: [process.execPath, main, verb, "-f", file, ...(go[verb] ?? []), ...flags],
      }));
    },
  },
];

interface Stage {
  verb: Verb;
  /** Runs on the host, and gives what it prints. */
  onHost: (script: string) => Promise<string>;
  /** Changes the cluster file. */
  edit: (system: Record<string, unknown>) => void;
}

const NO_CHANGES = ["--expect-no-changes"];
const DRIFTED = "/etc/modules-load.d/kubexm.conf";

/** The life of a cluster, the same everywhere. */
const STEPS: readonly { name: string; act: (stage: Stage) => Promise<unknown> }[] = [
  {
    name: "up makes it",
    act: async ({ verb, onHost }) => {
      await verb("up");
      assert.match(await onHost("cat /etc/hosts"), /KubeXM Managed Block/);
    },
  },
  { name: "a second up changes nothing", act: ({ verb }) => verb("up", NO_CHANGES) },
  {
    name: "drift shows in a preview that looks",
    act: async ({ verb, onHost }) => {
      await onHost(`echo '# by hand' >>${DRIFTED}`);
      await verb("preview", NO_CHANGES);
      assert.match(await verb("preview", ["--refresh"]), /! path \/etc\/modules-load\.d\/kubexm\.conf/);
      assert.match(await onHost(`cat ${DRIFTED}`), /by hand/);
    },
  },
  {
    name: "up --refresh heals it, and is then content",
    act: async ({ verb, onHost }) => {
      await verb("up", ["--refresh"]);
      assert.doesNotMatch(await onHost(`cat ${DRIFTED}`), /by hand/);
      await verb("up", ["--refresh", ...NO_CHANGES]);
    },
  },
  {
    name: "a create that fails is told with its host and step, and fails again while its cause stands",
    act: async ({ verb, onHost, edit }) => {
      edit({ timezone: "Asia/Tokyo" });
      // Nothing can be renamed over a mount point.
      await onHost("rm -f /etc/localtime && touch /etc/localtime && mount --bind /etc/hostname /etc/localtime");
      const told = /node1 › System [^]*\/etc\/localtime/;
      assert.match(await verb("up", [], 1), told);
      assert.match(await verb("up", [], 1), told);
    },
  },
  {
    name: "the next up repairs it",
    act: async ({ verb, onHost }) => {
      await onHost("umount /etc/localtime");
      await verb("up");
      assert.match(await onHost("readlink /etc/localtime"), /Asia\/Tokyo/);
      await verb("up", NO_CHANGES);
    },
  },
  {
    name: "destroy gives the host back",
    act: async ({ verb, onHost }) => {
      await verb("destroy");
      assert.doesNotMatch(await onHost("cat /etc/hosts"), /KubeXM/);
      assert.equal(
        (await onHost("ls -d /var/lib/kubexm /etc/modules-load.d/kubexm.conf 2>/dev/null || true")).trim(),
        "",
      );
    },
  },
];

function clusterFile(lab: Lab, name: string): { path: string; edit: Stage["edit"] } {
  const path = join(temporary, `${name}.yaml`);
  const cluster = parse(readFileSync(lab.clusterYaml, "utf8")) as {
    metadata: { name: string };
    spec: Record<string, unknown>;
  };
  const edit: Stage["edit"] = (system) => {
    writeFileSync(
      path,
      stringify({
        ...cluster,
        metadata: { name: STACK },
        spec: { ...cluster.spec, kubernetes: { type: "none" }, system },
      }),
    );
  };
  edit({});
  return { path, edit };
}

for (const [i, { name, ready }] of PLACES.entries())
  test(`${name}: from up to destroy`, async (t) => {
    const { env: tools } = await ensurePulumi();
    const state = join(temporary, `state${i}`);
    mkdirSync(state);
    const env = { ...tools, PULUMI_BACKEND_URL: `file://${state}`, PULUMI_CONFIG_PASSPHRASE: "contract" };
    await withLab({ hosts: 1, cwd: temporary }, async (lab) => {
      const [host] = lab.hosts;
      assert.ok(host);
      const { path, edit } = clusterFile(lab, `cluster${i}`);
      const say = await ready(path, env);
      const verb: Verb = async (word, flags = [], code = 0) => {
        const { cwd, argv } = say(word, flags);
        const [program = "", ...args] = argv;
        const ended = await run(program, args, { cwd, env, okCodes: [0, 1, 255] });
        const output = ended.stdout + ended.stderr;
        assert.equal(ended.code === 0, code === 0, `${argv.join(" ")}: exit code ${ended.code}\n${output}`);
        return output;
      };
      const onHost = async (script: string) => (await labExec(host, script)).stdout;
      const done: string[] = [];
      for (const step of STEPS) {
        await t.test(step.name, async () => {
          await step.act({ verb, onHost, edit });
          done.push(step.name);
        });
        // Each step stands on the one before.
        if (done.at(-1) !== step.name) break;
      }
    });
  });

/** Waits for something that must come, at most as long as the runner lets a file run. */
async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await sleep(50);
  }
}

function textIn(dir: string, name: RegExp): string | undefined {
  if (!existsSync(dir)) return undefined;
  const file = readdirSync(dir, { recursive: true, encoding: "utf8" }).find((path) => name.test(path));
  return file === undefined ? undefined : readFileSync(join(dir, file), "utf8");
}

test("the kubexm command: a run that was killed with its Pulumi is taken up by the next, unaided", async () => {
  await withLab({ hosts: 1, cwd: temporary }, async (lab) => {
    const [host] = lab.hosts;
    assert.ok(host);
    const { path } = clusterFile(lab, "killed");
    const cwd = mkdtempSync(join(temporary, "killed-"));
    const args = (verb: string) => [join(repo, "dist", "cli", "main.js"), verb, "-f", path, "--yes"];
    const state = join(cwd, ".kubexm", STACK, "state", ".pulumi");
    const first = spawn(process.execPath, args("up"), { cwd, stdio: "ignore" });
    const over = once(first, "exit");
    const creating = () => /"type":\s*"creating"/.test(textIn(join(state, "stacks"), /\.json$/) ?? "");
    const pulumi = await until(() => {
      assert.equal(first.exitCode, null, "the run ended before it could be killed");
      const lock = creating() ? textIn(join(state, "locks"), /\.json$/) : undefined;
      if (lock === undefined) return undefined;
      const { pid } = JSON.parse(lock) as { pid: number };
      // Stopped before it is looked at again: what it is making then is still being made when it is killed.
      process.kill(pid, "SIGSTOP");
      if (creating()) return pid;
      process.kill(pid, "SIGCONT");
      return undefined;
    });
    first.kill("SIGKILL");
    process.kill(pulumi, "SIGKILL");
    await over;

    const next = await run(process.execPath, args("up"), { cwd });
    assert.match(next.stderr, /removed the lock of a run that was killed/);
    assert.match(next.stderr, /operations half done; they are taken up again/);
    const again = await run(process.execPath, args("up"), { cwd });
    assert.match(again.stdout, /no changes: /);
    await run(process.execPath, args("destroy"), { cwd });
    assert.equal((await labExec(host, "ls -d /var/lib/kubexm 2>/dev/null || true")).stdout, "");
  });
});
