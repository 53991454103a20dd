import { spawn } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { UsageError, UserError, understood } from "../toolchain/errors.js";
import { type Lab, labDir } from "./files.js";
import { DEFAULT_NAME, labDown, labDownAll, labStatus, labUp, openLab } from "./hosts.js";
import { balancerCommand } from "./balancer.js";
import { mirrorCommand } from "./mirror/main.js";
import { parseRange } from "./network.js";
import type { LabHost, LabOptions } from "./plan.js";
import { type Snapshot, compare, describeDifferences, snapshot } from "./snapshot.js";

const USAGE = `usage: kubexm lab VERB [--name NAME]

  up [options]           start hosts, or find those started with the same options
    --hosts N|A,B,C        how many (1), or their names
    --memory SIZE          limit of each host: 512m, 2g
    --user NAME            a user who is not root, with sudo
    --password             log in with a password only
    --sudo-password        sudo asks for a password
    --bastion [--only]     one more host to jump through; --only: no other way in
    --second-interface     an internal network beside the first
    --sshd "KEY VALUE"     a line of sshd_config, as "MaxSessions 2"; repeatable
    --shell PATH           the user's login shell
    --package NAME         a Debian package on every host; repeatable
    --python               Python 3 on every host
    --range CIDR           a service or pod range whose packets must not leave the machine, in place of the usual
                           ones (10.96.0.0/12, 10.244.0.0/16, 10.233.0.0/17); repeatable
  down [--all]           take the lab down; --all: every lab on this machine
  status                 the lab's hosts, and how to reach them
  ssh HOST [COMMAND]     log in, or run a command
  snapshot HOST FILE     record a host's state
  compare HOST FILE      what is otherwise than in the record; exit code 1 if anything is
  mirror VERB            parts of a cluster, built here and served as upstream does (kubexm lab mirror --help)
  balancer serve         a load balancer before API servers: --address IP --to HOST,HOST`;

const misused = (problem: string) => new UsageError(`${problem} (kubexm lab --help)`);

const UP = {
  hosts: { type: "string" },
  memory: { type: "string" },
  user: { type: "string" },
  password: { type: "boolean" },
  "sudo-password": { type: "boolean" },
  bastion: { type: "boolean" },
  only: { type: "boolean" },
  "second-interface": { type: "boolean" },
  sshd: { type: "string", multiple: true },
  shell: { type: "string" },
  package: { type: "string", multiple: true },
  python: { type: "boolean" },
  range: { type: "string", multiple: true },
} as const;
const NAME = { name: { type: "string" } } as const;

const parsed = <T>(parse: () => T): T => understood(parse, misused);

function sshdLine(line: string): [string, string] {
  const [, key = "", value = ""] = /^\s*(\w+)[\s=]+(.+)$/.exec(line) ?? [];
  if (key === "") throw misused(`--sshd "${line}": write it as "MaxSessions 2"`);
  return [key, value];
}

function checkedRange(range: string): string {
  if (/\/\d+$/.test(range) && parseRange(range) !== undefined) return range;
  throw misused(`--range ${range}: write it as 10.96.0.0/12`);
}

/** The options of `lab up`. */
export function upOptions(argv: readonly string[]): LabOptions {
  const { values } = parsed(() => parseArgs({ args: [...argv], options: { ...UP, ...NAME } }));
  const { hosts = "1", memory, user, shell, sshd } = values;
  if (values.only && !values.bastion) throw misused("--only goes with --bastion");
  if (values["sudo-password"] && user === undefined) throw misused("--sudo-password goes with --user");
  return {
    hosts: /^\d+$/.test(hosts) ? Number(hosts) : hosts.split(","),
    ...(values.name !== undefined && { name: values.name }),
    ...(memory !== undefined && { memory }),
    ...(user !== undefined && { user }),
    ...(values.password && { login: "password" }),
    ...(values["sudo-password"] && { sudo: "password" }),
    ...(values.bastion && { bastion: values.only ? "only" : true }),
    ...(values["second-interface"] && { secondInterface: true }),
    ...(sshd && { sshd: Object.fromEntries(sshd.map(sshdLine)) }),
    ...(shell !== undefined && { shell }),
    ...(values.package && { packages: values.package }),
    ...(values.python && { withPython: true }),
    ...(values.range && { ranges: values.range.map(checkedRange) }),
  };
}

const named = (name: string | undefined) => (name === undefined || name === DEFAULT_NAME ? "" : ` --name ${name}`);

function howTo(host: LabHost): string {
  const secret = host.password ?? host.sudoPassword;
  return [
    `${host.name.padEnd(12)} ${host.address.padEnd(15)} ${host.user}`,
    host.bastion === undefined ? "" : ` by way of ${host.bastion}`,
    secret === undefined ? "" : ` (password ${secret})`,
  ].join("");
}

const everyHost = ({ hosts, bastion }: Lab) => [...hosts, ...(bastion ? [bastion] : [])];

/** What was begun is taken back when a signal comes; the exit code then tells the signal. */
async function interruptible(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const control = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  let by: (typeof signals)[number] | undefined;
  const stop = (signal: (typeof signals)[number]) => {
    by ??= signal;
    control.abort(new UserError(`stopped by ${signal}`));
  };
  for (const signal of signals) process.on(signal, stop);
  try {
    return await work(control.signal);
  } catch (error) {
    if (!control.signal.aborted || by === undefined) throw error;
    console.error(`stopped by ${by}: what was begun is taken back`);
    return 128 + constants.signals[by];
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}

function up(argv: readonly string[]): Promise<number> {
  const options = upOptions(argv);
  return interruptible(async (signal) => tell(await labUp({ ...options, signal }), options.name));
}

function tell(lab: Lab, labName: string | undefined): number {
  console.log(everyHost(lab).map(howTo).join("\n"));
  const name = named(labName);
  console.log(`\ncluster file: ${lab.clusterYaml}`);
  console.log(`log in:       kubexm lab ssh${name} ${lab.hosts[0]?.name ?? ""}   or ssh -F ${lab.sshConfig} HOST`);
  console.log(`take down:    kubexm lab down${name}`);
  return 0;
}

/** The lab that is meant when none is named: the only one of this folder. */
async function meant(name: string | undefined): Promise<string> {
  if (name !== undefined) return name;
  const names: string[] = await readdir(dirname(labDir(DEFAULT_NAME))).catch(() => []);
  if (names.length > 1 && !names.includes(DEFAULT_NAME))
    throw misused(`several labs are here (${names.join(", ")}): choose one with --name`);
  return names.length === 1 ? (names[0] ?? DEFAULT_NAME) : DEFAULT_NAME;
}

const noLab = (name: string) =>
  new UserError(`no lab ${name} is up in this folder: kubexm lab up${named(name)} starts one`);

async function down(argv: readonly string[]): Promise<number> {
  const options = { ...NAME, all: { type: "boolean" } } as const;
  const { values } = parsed(() => parseArgs({ args: [...argv], options }));
  if (values.all) {
    const names = await labDownAll();
    console.log(names.length === 0 ? "no lab was up" : `taken down: ${names.join(", ")}`);
    return 0;
  }
  const name = await meant(values.name);
  if (!(await labDown(name))) throw noLab(name);
  console.log(`lab ${name} is taken down`);
  return 0;
}

async function status(argv: readonly string[]): Promise<number> {
  const { values } = parsed(() => parseArgs({ args: [...argv], options: NAME }));
  const name = await meant(values.name);
  const found = await labStatus(name);
  if (!found) throw noLab(name);
  for (const { host, state } of found.hosts) console.log(`${howTo(host)}  ${state}`);
  return found.hosts.every(({ state }) => state === "running") ? 0 : 1;
}

async function hostNamed(lab: string | undefined, host: string): Promise<{ lab: Lab; host: LabHost }> {
  const name = await meant(lab);
  const found = await openLab(name);
  if (!found) throw noLab(name);
  const all = everyHost(found);
  const wanted = all.find((one) => one.name === host);
  if (wanted) return { lab: found, host: wanted };
  throw new UserError(`lab ${name} has no host ${host}: it has ${all.map((one) => one.name).join(", ")}`);
}

/** --name before the host; what follows the host belongs to the command. */
function nameThenRest(argv: readonly string[]): { name?: string; rest: readonly string[] } {
  const [first = "", second, ...rest] = argv;
  if (first === "--name" && second !== undefined) return { name: second, rest };
  return first.startsWith("--name=") ? { name: first.slice(7), rest: argv.slice(1) } : { rest: argv };
}

async function ssh(argv: readonly string[]): Promise<number> {
  const { name, rest } = nameThenRest(argv);
  const [hostName, ...command] = rest;
  if (hostName === undefined) throw misused("lab ssh: which host?");
  const { lab, host } = await hostNamed(name, hostName);
  if (host.password !== undefined) console.error(`password of ${host.user}: ${host.password}`);
  return new Promise((resolve, reject) => {
    const child = spawn("ssh", ["-F", lab.sshConfig, hostName, ...command], { stdio: "inherit" });
    child.once("error", () => reject(new UserError("lab ssh needs the ssh command: install openssh-client")));
    child.once("close", (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

async function hostAndFile(argv: readonly string[], verb: string): Promise<{ host: LabHost; file: string }> {
  const { values, positionals } = parsed(() => parseArgs({ args: [...argv], options: NAME, allowPositionals: true }));
  const [hostName, file, ...more] = positionals;
  if (hostName === undefined || file === undefined || more.length > 0)
    throw misused(`lab ${verb}: a host and a file, please`);
  return { host: (await hostNamed(values.name, hostName)).host, file };
}

async function takeSnapshot(argv: readonly string[]): Promise<number> {
  const { host, file } = await hostAndFile(argv, "snapshot");
  await writeFile(file, JSON.stringify(await snapshot(host), null, 1));
  return 0;
}

async function readSnapshot(file: string): Promise<Snapshot> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Snapshot;
  } catch (error) {
    throw new UserError(`${file} is no snapshot: take one with kubexm lab snapshot HOST ${file}`, { cause: error });
  }
}

async function compareWith(argv: readonly string[]): Promise<number> {
  const { host, file } = await hostAndFile(argv, "compare");
  const before = await readSnapshot(file);
  const differences = compare(before, await snapshot(host));
  console.log(differences.length === 0 ? `${host.name} is as it was` : describeDifferences(differences));
  return differences.length === 0 ? 0 : 1;
}

const VERBS: Readonly<Record<string, (argv: readonly string[]) => Promise<number>>> = {
  up,
  down,
  status,
  ssh,
  snapshot: takeSnapshot,
  compare: compareWith,
  mirror: mirrorCommand,
  balancer: balancerCommand,
};

const isHelp = (word: string | undefined) => word === "--help" || word === "-h";

/** What follows the host of `ssh` is a command of its own; the mirror has a help of its own. */
const wantsHelp = (verb: string, rest: readonly string[]) =>
  verb === "help" || isHelp(verb) || (verb === "ssh" ? isHelp(rest[0]) : verb !== "mirror" && rest.some(isHelp));

/** `kubexm lab …`: the exit code. What goes wrong is an error of one line. */
export async function labCommand(argv: readonly string[]): Promise<number> {
  const [verb = "", ...rest] = argv;
  if (wantsHelp(verb, rest)) {
    console.log(USAGE);
    return 0;
  }
  const run = VERBS[verb];
  if (run) return run(rest);
  if (verb !== "") throw misused(`lab ${verb}: no such verb`);
  console.error(USAGE);
  return 2;
}
