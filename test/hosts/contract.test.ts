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
import { stackOf } from "../harness/settings.js";

const repo = join(__dirname, "..", "..", "..");
const temporary = mkdtempSync(join(tmpdir(), "kubexm-contract-"));
const STACK = "contract";

after(() => rmSync(temporary, { recursive: true, force: true }));

type Env = Record<string, string>;
/** How a verb is said somewhere. */
type Say = (verb: string, flags: readonly string[]) => { cwd: string; argv: readonly string[] };

interface Place {
  name: string;
  /** The name of Pulumi's project. */
  project: string;
  /** Makes the place ready. */
  ready: (clusterYaml: string, env: Env) => Promise<Say>;
  /** What is looked at here only, after the life of a cluster. */
  more?: readonly Step[];
}

type Verb = (verb: string, flags?: readonly string[], code?: number) => Promise<string>;

const PLAIN: Readonly<Record<string, readonly string[]>> = {
  preview: [],
  up: ["--yes", "--skip-preview"],
  refresh: ["--yes", "--skip-preview"],
  destroy: ["--yes", "--skip-preview"],
};

/** Plain Pulumi on the program in a folder. */
async function pulumiIn(folder: string, clusterYaml: string, env: Env): Promise<Say> {
  const place = mkdtempSync(join(temporary, "stack-"));
  const stack = await stackOf({ folder, stack: STACK, place, env }, { "kubexm:file": clusterYaml });
  return (verb, flags) => ({ cwd: folder, argv: ["pulumi", verb, ...stack, ...(PLAIN[verb] ?? []), ...flags] });
}

/** A command of kubexm's in a folder. */
const commandIn =
  (cwd: string, command: readonly string[], file: string): Say =>
  (verb, flags) => ({
    cwd,
    argv: [...command, verb, "-f", file, ...(verb === "preview" ? [] : ["--yes"]), ...flags],
  });

/** A project of somebody else's, which has the packed package and nothing of this clone. */
async function makeProject(): Promise<string> {
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

let made: Promise<string> | undefined;
const scratchProject = () => (made ??= makeProject());

interface Stage {
  verb: Verb;
  /** Runs on the host, and gives what it prints. */
  onHost: (script: string) => Promise<string>;
  /** What the state holds. */
  resources: () => Promise<Stored[]>;
}

interface Stored {
  type: string;
  initErrors?: string[];
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
}

interface Step {
  name: string;
  act: (stage: Stage) => Promise<unknown>;
}

const NO_CHANGES = ["--expect-no-changes"];
const DRIFTED = "/etc/modules-load.d/kubexm.conf";
const FOLDER = "/etc/modules-load.d";
/** Nothing can be written there, and nothing that was there before is otherwise. */
const BREAK = `mount --bind ${FOLDER} ${FOLDER} && mount -o remount,bind,ro ${FOLDER}`;
const MEND = `umount ${FOLDER}`;
const LEFT = `ls -d /var/lib/kubexm ${DRIFTED} 2>/dev/null || true`;

const isOurs = ({ type }: Stored) => type.startsWith("pulumi-nodejs:dynamic/kubexm:");
const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** What a half-made resource holds: why it is, and what its next update and its removal are run by. */
async function isHalfMade({ resources }: Stage): Promise<void> {
  const all = (await resources()).filter(isOurs);
  const broken = all.filter(({ initErrors = [] }) => initErrors.length > 0);
  assert.deepEqual(
    broken.map(({ type }) => type),
    ["pulumi-nodejs:dynamic/kubexm:System"],
  );
  assert.match(broken[0]?.initErrors?.join("\n") ?? "", /modules-load\.d/);
  for (const { type, inputs, outputs } of all)
    for (const side of [inputs, outputs]) assert.match(textOf(side?.["__provider"]), /^exports\.handler=/, type);
}

const failsToUp = async ({ verb }: Stage) =>
  assert.match(await verb("up", [], 1), /node1 › System [^]*\/etc\/modules-load\.d/);

const isGivenBack = async ({ onHost }: Stage) => {
  assert.doesNotMatch(await onHost("cat /etc/hosts"), /KubeXM/);
  assert.equal((await onHost(LEFT)).trim(), "");
};

/** The life of a cluster, the same everywhere. */
const STEPS: readonly Step[] = [
  {
    name: "a create that fails is told with its host and step, is kept half-made, and fails again while its cause stands",
    act: async (stage) => {
      await stage.onHost(BREAK);
      await failsToUp(stage);
      await isHalfMade(stage);
      await failsToUp(stage);
    },
  },
  {
    name: "the next up makes it whole",
    act: async ({ verb, onHost, resources }) => {
      await onHost(MEND);
      await verb("up");
      assert.match(await onHost("cat /etc/hosts"), /KubeXM Managed Block/);
      assert.match(await onHost(`cat ${DRIFTED}`), /Managed by kubexm/);
      assert.deepEqual(
        (await resources()).flatMap(({ initErrors = [] }) => initErrors),
        [],
      );
    },
  },
  { name: "a second up changes nothing", act: ({ verb }) => verb("up", NO_CHANGES) },
  {
    name: "drift shows in a preview that looks",
    act: async ({ verb, onHost }) => {
      await onHost(`echo '# by hand' >>${DRIFTED}`);
      await verb("preview", NO_CHANGES);
      const preview = await verb("preview", ["--refresh"]);
      assert.match(preview, /! path \/etc\/modules-load\.d\/kubexm\.conf/);
      assert.match(preview, /path \/etc\/modules-load\.d\/kubexm\.conf: found -, wanted \+\n[^]*-# by hand/);
      const diff = await verb("preview", ["--refresh", "--diff"]);
      assert.match(diff, /drift +: \[[^]*?found: [^]*?step : "path \/etc\/modules-load\.d\/kubexm\.conf"[^]*?want : /);
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
    name: "refresh records drift and heals nothing; a plain up then does",
    act: async ({ verb, onHost }) => {
      await onHost(`echo '# by hand' >>${DRIFTED}`);
      await verb("refresh");
      assert.match(await onHost(`cat ${DRIFTED}`), /by hand/);
      await verb("up");
      assert.doesNotMatch(await onHost(`cat ${DRIFTED}`), /by hand/);
    },
  },
  {
    name: "destroy gives the host back",
    act: async (stage) => {
      await stage.verb("destroy");
      await isGivenBack(stage);
    },
  },
];

/** In one place only, as each costs some runs more. */
const FURTHER: readonly Step[] = [
  {
    name: "what is replaced stands on the host afterwards",
    act: async (stage) => {
      const { verb, onHost } = stage;
      await verb("up");
      await verb("up", ["--replace", "**-system"]);
      assert.match(await onHost(`cat ${DRIFTED}`), /Managed by kubexm/);
      await verb("up", ["--refresh", ...NO_CHANGES]);
      await verb("destroy");
      await isGivenBack(stage);
    },
  },
  {
    name: "destroy gives a host back that is half-made",
    act: async (stage) => {
      await stage.onHost(BREAK);
      await failsToUp(stage);
      await isHalfMade(stage);
      assert.match(await stage.onHost(LEFT), /\/var\/lib\/kubexm/);
      await stage.onHost(MEND);
      await stage.verb("destroy");
      await isGivenBack(stage);
    },
  },
];

const PLACES: readonly Place[] = [
  {
    name: "this repository's program",
    project: "kubexm",
    ready: (file, env) => pulumiIn(repo, file, env),
  },
  {
    name: "a program in examples/",
    project: "cluster-file",
    ready: (file, env) => pulumiIn(join(repo, "examples", "cluster-file"), file, env),
  },
  {
    name: "a project with the packed package",
    project: "cluster-file",
    ready: async (file, env) => pulumiIn(await scratchProject(), file, env),
  },
  {
    name: "the kubexm command",
    project: "kubexm",
    ready: (file) =>
      Promise.resolve(commandIn(temporary, [process.execPath, join(repo, "dist", "cli", "main.js")], file)),
    more: FURTHER,
  },
  {
    name: "the kubexm command of the packed package",
    project: "kubexm",
    ready: async (file) => {
      const dir = await scratchProject();
      return commandIn(dir, [join(dir, "node_modules", ".bin", "kubexm")], file);
    },
  },
];

/** The lab's cluster file, without Kubernetes. */
function clusterFile(lab: Lab, name: string): string {
  const path = join(temporary, `${name}.yaml`);
  const cluster = parse(readFileSync(lab.clusterYaml, "utf8")) as { spec: Record<string, unknown> };
  const spec = { ...cluster.spec, kubernetes: { type: "none" } };
  writeFileSync(path, stringify({ ...cluster, metadata: { name: STACK }, spec }));
  return path;
}

/** By the stack's full name, which is understood in any folder. */
async function exported(project: string, env: Env): Promise<Stored[]> {
  const args = ["stack", "export", "--stack", `organization/${project}/${STACK}`];
  const { stdout } = await run("pulumi", args, { cwd: temporary, env });
  return (JSON.parse(stdout) as { deployment: { resources?: Stored[] } }).deployment.resources ?? [];
}

for (const [i, { name, project, ready, more = [] }] of PLACES.entries())
  test(`${name}: from up to destroy`, async (t) => {
    const { env: tools } = await ensurePulumi();
    const state = join(temporary, `state${i}`);
    mkdirSync(state);
    const env = { ...tools, PULUMI_BACKEND_URL: `file://${state}`, PULUMI_CONFIG_PASSPHRASE: "contract" };
    await withLab({ hosts: 1, cwd: temporary }, async (lab) => {
      const [host] = lab.hosts;
      assert.ok(host);
      const say = await ready(clusterFile(lab, `cluster${i}`), env);
      const verb: Verb = async (word, flags = [], code = 0) => {
        const { cwd, argv } = say(word, flags);
        const [program = "", ...args] = argv;
        const ended = await run(program, args, { cwd, env, okCodes: [0, 1, 255] });
        const output = ended.stdout + ended.stderr;
        assert.equal(ended.code === 0, code === 0, `${argv.join(" ")}: exit code ${ended.code}\n${output}`);
        return output;
      };
      const onHost = async (script: string) => (await labExec(host, script)).stdout;
      const stage: Stage = { verb, onHost, resources: () => exported(project, env) };
      const done: string[] = [];
      for (const step of [...STEPS, ...more]) {
        await t.test(step.name, async () => {
          await step.act(stage);
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
    const path = clusterFile(lab, "killed");
    const cwd = mkdtempSync(join(temporary, "killed-"));
    const args = (verb: string) => [join(repo, "dist", "cli", "main.js"), verb, "-f", path, "--yes"];
    const home = join(cwd, ".kubexm", STACK);
    const first = spawn(process.execPath, args("up"), { cwd, stdio: "ignore" });
    const over = once(first, "exit");
    // The first line is of the state; the second tells that something has begun.
    const journal = join(home, `journal.${STACK}`);
    const begun = () => existsSync(journal) && readFileSync(journal, "utf8").split("\n").length > 2;
    const pulumi = await until(() => {
      assert.equal(first.exitCode, null, "the run ended before it could be killed");
      const lock = begun() ? textIn(join(home, "state", ".pulumi", "locks"), /\.json$/) : undefined;
      return lock === undefined ? undefined : (JSON.parse(lock) as { pid: number }).pid;
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
