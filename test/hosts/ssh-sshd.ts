import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const SSHD = "/usr/sbin/sshd";

export interface Sshd {
  port: number;
  folder: string;
  /** A private key that may log in as root. */
  key: string;
  knownHosts: string;
  /** The host's public key line: type and base64. */
  hostKey: string;
  log: () => string;
  stop: () => Promise<void>;
}

export function keygen(path: string, ...more: string[]): string {
  rmSync(path, { force: true });
  execFileSync("ssh-keygen", ["-q", "-N", "", "-t", "ed25519", "-f", path, ...more]);
  return path;
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

function publicKey(path: string): string {
  return readFileSync(`${path}.pub`, "utf8").split(" ").slice(0, 2).join(" ");
}

async function listening(child: ChildProcess, log: () => string): Promise<void> {
  while (!log().includes("Server listening")) {
    if (child.exitCode !== null) throw new Error(`sshd did not start: ${log()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The machine's own sshd on a loopback port, with its own keys and the given settings. */
export async function startSshd(settings: readonly string[] = [], port = 0): Promise<Sshd> {
  const folder = mkdtempSync(join(tmpdir(), "kubexm-sshd-"));
  const host = keygen(join(folder, "host"));
  const key = keygen(join(folder, "user"));
  const at = port || (await freePort());
  if (!existsSync("/run/sshd")) mkdirSync("/run/sshd", { mode: 0o755 });
  writeFileSync(join(folder, "authorized"), readFileSync(`${key}.pub`));
  const config = [
    ...settings,
    `ListenAddress 127.0.0.1:${at}`,
    `HostKey ${host}`,
    `AuthorizedKeysFile ${join(folder, "authorized")}`,
    "StrictModes no",
    `SetEnv HOME=${folder}`, // the start-up files of whoever runs the tests stay out
    "PermitRootLogin yes",
    "UsePAM no",
    "Subsystem sftp internal-sftp",
    "PidFile none",
    "LogLevel VERBOSE",
  ];
  writeFileSync(join(folder, "config"), `${config.join("\n")}\n`);
  const child = spawn(SSHD, ["-D", "-e", "-f", join(folder, "config")], { stdio: ["ignore", "ignore", "pipe"] });
  const text: string[] = [];
  child.stderr.on("data", (chunk: Buffer) => text.push(chunk.toString()));
  const log = () => text.join("");
  await listening(child, log);
  const knownHosts = join(folder, "known_hosts");
  const hostKey = publicKey(host);
  writeFileSync(knownHosts, `[127.0.0.1]:${at} ${hostKey}\n`);
  return {
    port: at,
    folder,
    key,
    knownHosts,
    hostKey,
    log,
    stop: async () => {
      child.kill();
      if (child.exitCode === null) await once(child, "exit");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
