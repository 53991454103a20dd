import { randomBytes } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ProjectSettings } from "@pulumi/pulumi/automation";
import { UserError, codeOf } from "../toolchain/errors.js";
import { RUN_MARK } from "./stale.js";
import { holdsSomething, isKnown, shortName, stateFile } from "./state-file.js";

export const PROJECT: ProjectSettings = {
  name: "kubexm",
  description: "Made by the kubexm command; change cluster.yaml, not this file",
  runtime: { name: "nodejs", options: { typescript: false } },
};
/** More is no faster: the provider process only grows, by half again with 256 on 40 hosts. */
const PARALLEL = "64";
/** Pulumi searches its memory for what is of no use a quarter as often: a tenth of all CPU time of a run, for 50 MB with 40 hosts. */
const GOGC = "400";
const LIGHT_SDK = join(__dirname, "light-sdk.js");
/**
 * For the provider process, whose calls leave much that is soon of no use: Node lets that lie until it is gigabytes, the more
 * the higher the limit, of which a thousand hosts would need a fraction.
 */
export const NODE_OPTIONS = [
  "--max-semi-space-size=4",
  "--max-old-space-size=1024",
  `--require ${JSON.stringify(LIGHT_SDK)}`,
];
/** Tells the program and the provider where the files of the cluster are kept. */
export const CLUSTER_DIR = "KUBEXM_CLUSTER_DIR";

/** Where everything of one cluster is kept on this machine. */
export interface Home {
  dir: string;
  state: string;
  passphrase: string;
  /** Pulumi's project folder, and the provider's working folder: `kubexm` resolves from it. */
  work: string;
  logs: string;
  /** What the run at work does with the stack, which Pulumi writes into its state at the end. */
  journal: string;
}

/** The cluster's name, unless the user says otherwise. Empty is unset, as for Pulumi. */
export const stackOf = (cluster: string): string => process.env["PULUMI_STACK"] || cluster;

const stateIn = (dir: string) => join(dir, "state");

/**
 * `.kubexm/<cluster>` here or, if only that one has a state, beside the cluster file: the same file must find the same state. Of two
 * the one where something was made, as a look from elsewhere leaves an empty one.
 */
export function homeOf(cluster: string, file: string, cwd = process.cwd()): Home {
  const here = join(cwd, ".kubexm", cluster);
  const places = [...new Set([here, join(dirname(resolve(cwd, file)), ".kubexm", cluster)])];
  const stack = stackOf(cluster);
  const stateOf = (place: string) => stateFile(stateIn(place), PROJECT.name, stack);
  const journalIn = (place: string) => join(place, `journal.${shortName(stack)}`);
  const known = places.filter((place) => isKnown(stateOf(place)));
  // A first run that was killed left a journal, and a state of nothing.
  const isUsed = (place: string) => existsSync(journalIn(place)) || holdsSomething(stateOf(place));
  const dir = (known.length > 1 ? known.find(isUsed) : undefined) ?? known[0] ?? here;
  return {
    dir,
    state: stateIn(dir),
    passphrase: join(dir, "passphrase"),
    work: join(dir, "pulumi"),
    logs: join(dir, "logs"),
    journal: journalIn(dir),
  };
}

const UNSETTLED =
  "a run is at work or was killed, and the state does not know yet what it did; after a kill up or destroy goes on";

/** For those who go by the state alone. */
export function tellOfJournal({ journal }: Pick<Home, "journal">, tell = (line: string) => console.error(line)): void {
  if (existsSync(journal)) tell(UNSETTLED);
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  try {
    if (readlinkSync(path) === target) return;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") rmSync(path, { recursive: true });
  }
  // By rename, as a preview may do the same at this moment.
  const fresh = `${path}.${process.pid}`;
  rmSync(fresh, { force: true });
  symlinkSync(target, fresh, "dir");
  renameSync(fresh, path);
}

/** Makes `kubexm` and the SDK resolvable from the provider's folder, however and wherever kubexm is installed. */
function linkPackages(work: string): void {
  const modules = join(work, "node_modules");
  link(resolve(__dirname, "..", ".."), join(modules, "kubexm"));
  link(dirname(require.resolve("@pulumi/pulumi/package.json")), join(modules, "@pulumi", "pulumi"));
}

/** What file systems say that have no hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "ENOSYS"];

/** A whole one or none: what a full disk or a power cut left of one would encrypt with little or nothing. */
function writePassphrase(path: string): void {
  const fresh = `${path}.tmp-${process.pid}`;
  rmSync(fresh, { force: true });
  try {
    writeFileSync(fresh, randomBytes(32).toString("base64url"), { mode: 0o600, flag: "wx", flush: true });
    // Not by rename: of two runs that come at once, the second takes the passphrase of the first.
    linkSync(fresh, path);
  } catch (error) {
    if (NO_LINKS.includes(codeOf(error) ?? "")) renameSync(fresh, path);
    else if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(fresh, { force: true });
  }
}

function makePassphrase({ passphrase, state }: Home): void {
  const begun = existsSync(join(state, ".pulumi", "stacks"));
  const size = statSync(passphrase, { throwIfNoEntry: false })?.size;
  if (size !== undefined && (size > 0 || begun)) return;
  if (begun)
    throw new UserError(
      `${passphrase} is missing and the state beside it is encrypted with it: put the file back, or set PULUMI_CONFIG_PASSPHRASE`,
    );
  rmSync(passphrase, { force: true });
  writePassphrase(passphrase);
}

type Env = Record<string, string | undefined>;

/** An empty passphrase is one; the name of no file is not. */
const hasPassphrase = (env: Env) =>
  env["PULUMI_CONFIG_PASSPHRASE"] !== undefined || Boolean(env["PULUMI_CONFIG_PASSPHRASE_FILE"]);

/** The file that the user names, as seen from the user's folder: Pulumi runs in another one. */
function passphraseFile({ PULUMI_CONFIG_PASSPHRASE_FILE: file }: Env): Env {
  return file ? { PULUMI_CONFIG_PASSPHRASE_FILE: resolve(file) } : {};
}

/** A file:// address as Pulumi reads it from its own folder, made absolute. */
function absoluteFileUrl(url: string, cwd: string): string {
  const path = /^file:\/\/(.*)$/s.exec(url)?.[1];
  if (path === undefined || path.startsWith("/")) return url;
  return `file://${path.startsWith("~") ? join(homedir(), path.slice(1)) : resolve(cwd, path)}`;
}

const folderOf = (address: string) => decodeURIComponent(address.slice("file://".length).replace(/\?.*$/s, ""));

export interface Backend {
  env: Env;
  /** The folder of a file backend, whose locks can be looked at; none for a team's backend elsewhere. */
  state?: string;
  /** kubexm's own: nobody else lays it out. */
  own: boolean;
}

/** The address of a backend of the user's own. Empty is unset, as for Pulumi. */
export const foreignBackend = ({ PULUMI_BACKEND_URL: url }: Env = process.env): string | undefined => url || undefined;

/** Folders, passphrase and environment of a run. What the user set for Pulumi in the environment is left as it is. */
export function prepare(home: Home, user: Env = process.env): Backend {
  mkdirSync(home.dir, { recursive: true, mode: 0o700 });
  mkdirSync(home.work, { recursive: true });
  mkdirSync(home.logs, { recursive: true });
  linkPackages(home.work);
  const common: Env = {
    ...passphraseFile(user),
    PULUMI_PARALLEL: user["PULUMI_PARALLEL"] ?? PARALLEL,
    GOGC: user["GOGC"] ?? GOGC,
    // What the user says comes last, and so counts.
    NODE_OPTIONS: [...NODE_OPTIONS, user["NODE_OPTIONS"] ?? ""].join(" ").trim(),
  };
  const url = foreignBackend(user);
  if (url !== undefined) {
    const address = absoluteFileUrl(url, process.cwd());
    return {
      // The login for a backend of the user's own is in the user's own folder.
      env: { ...common, PULUMI_BACKEND_URL: address, PULUMI_HOME: user["PULUMI_HOME"] },
      ...(address.startsWith("file://") && { state: folderOf(address) }),
      own: false,
    };
  }
  mkdirSync(home.state, { recursive: true, mode: 0o700 });
  if (!hasPassphrase(user)) makePassphrase(home);
  return {
    env: {
      ...common,
      // Without notes beside each file, which are written in place: a kill there makes the file unreadable.
      PULUMI_BACKEND_URL: `${pathToFileURL(home.state).href}?metadata=skip`,
      PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS: "true",
      ...(!hasPassphrase(user) && { PULUMI_CONFIG_PASSPHRASE_FILE: home.passphrase }),
    },
    state: home.state,
    own: true,
  };
}

/** What a changing run sets for the processes it starts. */
export function runEnvironment(
  home: Home,
  log: string,
  { changes, ends, journal }: { changes: boolean; ends: boolean; journal: boolean },
): Env {
  return {
    KUBEXM_RUN_LOG: log,
    // Pulumi writes all of its state twice for each resource that changes, unless somebody else keeps account of them.
    ...(journal && { KUBEXM_JOURNAL: home.journal, PULUMI_SKIP_CHECKPOINTS: "true" }),
    // The provider tells its plan where nothing is changed, and its progress where something is.
    ...(changes && { KUBEXM_PLAN: "0", [RUN_MARK]: home.dir }),
    // A shell that has it set must not take a running cluster's nodes out untold.
    KUBEXM_ENDING: ends ? "1" : "",
  };
}
