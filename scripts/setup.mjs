// Makes a clone ready to run: packages, the link to itself, dist/. Plain Node, as nothing is installed yet.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const NODE_NEEDED = [20, 19];
const SOURCES = ["artifacts", "bench", "cli", "lab", "provider", "resources", "test", "toolchain"];
const SINGLE_SOURCES = ["index.ts", "program.ts", "tsconfig.json", "package.json"];
const HEARTBEAT_MS = 15_000;
const INSIDE = "KUBEXM_PREPARING";

/** A failure that its message tells completely. */
export class SetupError extends Error {}

/** One line if this Node is too old, else undefined. */
export function nodeProblem(version = process.versions.node) {
  const [major, minor] = version.split(".").map(Number);
  const fits = major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1]);
  if (fits) return undefined;
  return `kubexm needs Node.js ${NODE_NEEDED.join(".")} or newer, this is ${version}: install it from https://nodejs.org/ or your package manager`;
}

function readOr(path, fallback) {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return fallback;
  }
}

const mtime = (path) => fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function startOf(pid) {
  const stat = readOr(`/proc/${pid}/stat`, "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? "ended" : (fields[19] ?? "0");
}

const boot = () => readOr("/proc/sys/kernel/random/boot_id", "0").slice(0, 8);

function alive(claim) {
  const [pid, start, bootId] = claim.split("-");
  if (bootId !== boot() || startOf(pid) !== start) return false;
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Claims of other living processes; those of dead ones are removed. */
function others(folder, own) {
  return fs.readdirSync(folder).filter((name) => {
    if (!name.startsWith("prepare-") || name === own) return false;
    if (alive(name.slice("prepare-".length))) return true;
    fs.rmSync(join(folder, name), { force: true });
    return false;
  });
}

/** Runs `work` while no other process prepares this clone. The claim's name tells its owner, so a killed one is noticed. */
async function alone(work) {
  // npm ci started by us calls prepare, for which we hold the claim.
  if (process.env[INSIDE] === root) return work();
  const folder = join(root, ".kubexm");
  fs.mkdirSync(folder, { recursive: true });
  const own = `prepare-${process.pid}-${startOf(process.pid)}-${boot()}-${randomBytes(4).toString("hex")}`;
  for (let told = false; ;) {
    if (others(folder, own).length === 0) {
      fs.writeFileSync(join(folder, own), "");
      if (others(folder, own).length === 0) break;
      fs.rmSync(join(folder, own), { force: true });
    } else if (!told) {
      told = true;
      process.stderr.write("another run prepares this clone: waiting for it\n");
    }
    await new Promise((wake) => setTimeout(wake, 50 + Math.random() * 200));
  }
  const release = () => fs.rmSync(join(folder, own), { force: true });
  process.once("exit", release);
  try {
    return await work();
  } finally {
    release();
    process.off("exit", release);
  }
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Runs a tool to its end with its output kept; tells every 15 s that it is still at work. */
export function tool(label, command, args, { quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const start = Date.now();
    const seconds = () => Math.round((Date.now() - start) / 1000);
    if (!quiet) process.stderr.write(`${label} …\n`);
    const beat = setInterval(() => process.stderr.write(`${label}: ${seconds()} s\n`), HEARTBEAT_MS);
    const path = `${join(root, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, PATH: path, [INSIDE]: root },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    const handlers = Object.entries(SIGNALS).map(([signal, code]) => {
      const stop = () => {
        child.kill(signal);
        process.exit(code);
      };
      process.on(signal, stop);
      return () => process.off(signal, stop);
    });
    const end = (failure) => {
      clearInterval(beat);
      for (const off of handlers) off();
      if (failure) return reject(failure);
      if (!quiet) process.stderr.write(`${label}: done (${seconds()} s)\n`);
      resolve(output);
    };
    child.once("error", (error) => end(new SetupError(`${label} failed: ${command}: ${error.message}`)));
    child.once("close", (code, signal) =>
      end(code === 0 ? undefined : new SetupError(`${label} failed (${signal ?? code}):\n${output.trimEnd()}`)),
    );
  });
}

/** npm writes its own note of what is installed last of all: a killed npm ci leaves none. */
const modulesStale = () =>
  mtime(join(root, "node_modules", ".package-lock.json")) < mtime(join(root, "package-lock.json"));

/** The loader text in Pulumi's state asks for "kubexm/provider" from here and from examples/ as any other project would. */
export function linkSelf() {
  const link = join(root, "node_modules", "kubexm");
  if (fs.realpathSync(root) === readLink(link)) return;
  fs.rmSync(link, { recursive: true, force: true });
  fs.symlinkSync("..", link, "dir");
}

function readLink(link) {
  try {
    return fs.realpathSync(link);
  } catch {
    return undefined;
  }
}

function files(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]));
}

const sources = () => [
  ...SINGLE_SOURCES.map((name) => join(root, name)),
  ...SOURCES.flatMap((name) => files(join(root, name))).filter((path) => path.endsWith(".ts")),
];

const dist = join(root, "dist");
const stamp = join(dist, ".built");

/** What was compiled from sources that are gone would still be found and run. */
const orphans = () =>
  files(dist).filter((path) => {
    const source = join(root, path.slice(dist.length)).replace(/(\.d\.ts|\.js|\.js\.map)$/, ".ts");
    return !basename(path).startsWith(".") && !fs.existsSync(source);
  });

const distStale = () => sources().some((path) => mtime(path) >= mtime(stamp)) || orphans().length > 0;

const hasCompiler = () => fs.existsSync(join(root, "node_modules", "typescript"));

async function buildNow() {
  const started = new Date();
  for (const path of orphans()) fs.rmSync(path, { force: true });
  await tool("building kubexm", "tsc", ["-p", "tsconfig.json"]);
  fs.writeFileSync(stamp, "");
  fs.utimesSync(stamp, started, started);
}

/** After npm ci: the link, and dist/ where the compiler is there (an install without development packages has none). */
export async function finish() {
  linkSelf();
  if (hasCompiler() && distStale()) await alone(() => (distStale() ? buildNow() : undefined));
}

const UNREACHABLE = /EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/;

async function installNow() {
  if (!modulesStale()) return;
  const args = ["ci", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=1"];
  await tool("installing packages (npm ci)", "npm", args).catch((error) => {
    if (!UNREACHABLE.test(error.message)) throw error;
    throw new SetupError(
      `${error.message}\nthe npm registry cannot be reached: look at the network, or name a mirror or proxy of yours (npm config set registry|proxy URL), and run the same again`,
    );
  });
}

/** Everything a script needs. Nearly free when nothing has changed. */
export async function ready() {
  if (modulesStale()) await alone(installNow);
  await finish();
}

/** Runs `main` and ends with one line for people when something they can do something about went wrong. */
export async function start(main) {
  const problem = nodeProblem();
  if (problem) {
    process.stderr.write(`${problem}\n`);
    process.exit(1);
  }
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
