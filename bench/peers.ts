import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lab, LabHost } from "../lab/hosts.js";
import { once } from "../toolchain/cache.js";
import { UserError } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { progress } from "../toolchain/progress.js";
import type { Tool } from "./measure.js";
import { root } from "./root.js";

/** The newest that Debian 12's Python 3.11 runs; Mitogen names the ansible-core it is for. */
const PINS = { "ansible-core": "2.19.14", mitogen: "0.3.54", pyinfra: "3.10.0" } as const;
export const peerVersions: Readonly<Record<string, string>> = PINS;

/** All SSH clients use it, so that nobody pays for a post-quantum exchange that others do not do. */
export const KEX = "curve25519-sha256";

const pins = Object.entries(PINS).map(([name, version]) => `${name}==${version}`);

/** A Python environment with the other tools, made once. */
async function environment(): Promise<string> {
  const key = createHash("sha256").update(pins.join(" ")).digest("hex").slice(0, 12);
  return once(`bench-peers-${key}`, async (dir) => {
    const bar = progress(`Installing ${pins.join(", ")}`);
    try {
      await run("python3", ["-m", "venv", dir]);
      await run(join(dir, "bin", "python"), ["-m", "pip", "install", "--quiet", ...pins]);
      bar.done();
    } catch (error) {
      bar.fail();
      throw new UserError("the bench installs its peers by pip: it needs python3 with venv, and PyPI", {
        cause: error,
      });
    }
  });
}

/** Scripts in a venv that was renamed name a Python that is gone: they are handed to the one that is there. */
const script = (env: string, name: string, args: readonly string[]) => ({
  command: join(env, "bin", "python"),
  args: [join(env, "bin", name), ...args],
});

/** ssh's control sockets need a short path. */
function socketFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "kubexm-ssh-"));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** What the peers are to do, on which hosts: `work` is the name of a playbook and of a deploy in bench/peers, `files` what they bring. */
export interface Job {
  lab: Lab;
  folder: string;
  work: "role" | "ready";
  files: string;
}

const workFile = (work: Job["work"], kind: "yml" | "py") => join(root, "bench", "peers", `${work}.${kind}`);

function ansibleTool(env: string, { lab, folder, work, files }: Job, more: readonly string[]): Tool {
  mkdirSync(folder);
  const inventory = lab.hosts.map(
    ({ name, address, user }: LabHost) =>
      `${name} ansible_host=${address} ansible_user=${user} ansible_python_interpreter=/usr/bin/python3`,
  );
  writeFileSync(join(folder, "inventory"), `${inventory.join("\n")}\n`);
  const ssh = [
    `-i ${lab.privateKeyPath} -o UserKnownHostsFile=${lab.knownHostsPath} -o KexAlgorithms=${KEX}`,
    "-o ControlMaster=auto -o ControlPersist=60s",
  ];
  const config = [
    ...["[defaults]", `forks = ${lab.hosts.length}`, "host_key_checking = True", "retry_files_enabled = False"],
    ...[`local_tmp = ${folder}/tmp`, "deprecation_warnings = False", ...more],
    ...["[ssh_connection]", "pipelining = True", `ssh_args = ${ssh.join(" ")}`, `control_path_dir = ${socketFolder()}`],
  ];
  writeFileSync(join(folder, "ansible.cfg"), `${config.join("\n")}\n`);
  const args = ["-i", join(folder, "inventory"), "-e", `role_files=${files}`, workFile(work, "yml")];
  return {
    ...script(env, "ansible-playbook", args),
    env: { ANSIBLE_CONFIG: join(folder, "ansible.cfg"), ANSIBLE_NOCOLOR: "1" },
  };
}

async function mitogenPlugins(env: string): Promise<string> {
  const print = "import ansible_mitogen, os; print(os.path.dirname(ansible_mitogen.__file__))";
  const { stdout } = await run(join(env, "bin", "python"), ["-c", print]);
  return join(stdout.trim(), "plugins", "strategy");
}

function pyinfraTool(env: string, { lab, folder, work, files }: Job): Tool {
  mkdirSync(folder);
  const hosts = lab.hosts.map(({ address, user }) => [
    address,
    { ssh_user: user, ssh_key: lab.privateKeyPath, ssh_known_hosts_file: lab.knownHostsPath },
  ]);
  writeFileSync(join(folder, "inventory.py"), `hosts = [tuple(host) for host in ${JSON.stringify(hosts)}]\n`);
  return {
    ...script(env, "pyinfra", ["--yes", join(folder, "inventory.py"), workFile(work, "py")]),
    env: { BENCH_ROLE_FILES: files },
  };
}

const TOOLS: Readonly<Record<string, (env: string, job: Job) => Promise<Tool> | Tool>> = {
  pyinfra: pyinfraTool,
  mitogen: async (env, job) =>
    ansibleTool(env, job, ["strategy = mitogen_linear", `strategy_plugins = ${await mitogenPlugins(env)}`]),
  ansible: (env, job) => ansibleTool(env, job, []),
};

/** Ansible with pipelining, the same with Mitogen, and pyinfra, those that are wanted, each in a folder of its own. */
export async function peers(job: Job, wanted: readonly string[]): Promise<Record<string, Tool>> {
  const entries = Object.entries(TOOLS).filter(([name]) => wanted.includes(name));
  const env = entries.length > 0 ? await environment() : "";
  const made = entries.map(
    async ([name, make]) => [name, await make(env, { ...job, folder: join(job.folder, name) })] as const,
  );
  return Object.fromEntries(await Promise.all(made));
}

/** One fresh SSH login for each host, all at once, each with a script for a shell: the same for all, or each its own. */
export function sshTool(lab: Pick<Lab, "hosts" | "sshConfig">, scriptFile: string | ((host: string) => string)): Tool {
  const fileOf = typeof scriptFile === "string" ? () => scriptFile : scriptFile;
  const ssh = `ssh -F ${lab.sshConfig} -o KexAlgorithms=${KEX} -o BatchMode=yes`;
  const each = lab.hosts.map(({ name }) => `${ssh} ${name} sh -s <${fileOf(name)} & p="$p $!"`);
  const wait = "for pid in $p; do wait $pid || exit 1; done";
  return { command: "sh", args: ["-c", [...each, wait].join("\n")] };
}
