import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RemoteError } from "../../provider/errors";
import type { Remote } from "../../provider/ssh/remote";

export const factsText = (machine = "machine-1") =>
  `ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n@arch=x86_64\n@machineId=${machine}\n@init=systemd\n`;

/** Ends all processes of a session: `timeout` puts its children into groups of their own, and new ones come meanwhile. */
function endSession(session: number): void {
  for (let ended = 1; ended > 0;) {
    const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    ended = all.filter((pid) => endIfOf(session, pid)).length;
  }
}

function endIfOf(session: number, pid: string): boolean {
  try {
    const [state, , , own] = readFileSync(join("/proc", pid, "stat"), "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return Number(own) === session && state !== "Z" && process.kill(Number(pid), "SIGKILL");
  } catch {
    // It has ended by itself.
    return false;
  }
}

/** A host in a folder: the real scripts run in a real sh, with the ledger and the lock kept below `folder`. */
export interface FakeHost {
  readonly remote: Remote;
  /** Titles of what was run, in order. */
  readonly ran: readonly string[];
  /** Everything that was sent. */
  readonly sent: readonly string[];
  /** Ends the shell of the next script when it prints a line like this, as a reboot would. */
  dieAt(line: RegExp | undefined): void;
  facts: string;
}

export function fakeHost(folder: string, name = "h1"): FakeHost {
  mkdirSync(folder, { recursive: true });
  const ran: string[] = [];
  const sent: string[] = [];
  let deadly: RegExp | undefined;
  const placed = (text: string) =>
    text
      .replaceAll("/var/lib/kubexm", join(folder, "K"))
      .replaceAll("/run/kubexm.lock", join(folder, "lock"))
      .replaceAll("/etc/os-release", join(folder, "os-release"))
      .replaceAll("/etc/machine-id", join(folder, "machine-id"));
  const fake = { facts: factsText() };

  const perform = (text: string, onLine?: (line: string) => void) =>
    new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve, reject) => {
      const child = spawn("setsid", ["/bin/sh", "-s"]);
      let [stdout, stderr, rest] = ["", "", ""];
      child.stdout.setEncoding("utf8").on("data", (data: string) => {
        stdout += data;
        const rows = (rest + data).split("\n");
        rest = rows.pop() ?? "";
        for (const row of rows) {
          onLine?.(row);
          if (deadly?.test(row) && child.pid !== undefined) {
            deadly = undefined;
            endSession(child.pid);
          }
        }
      });
      child.stderr.setEncoding("utf8").on("data", (data: string) => (stderr += data));
      child.stdin.on("error", () => undefined);
      child.on("error", reject).on("close", (code) => resolve({ code, stdout, stderr }));
      child.stdin.end(text);
    });

  const remote: Remote = {
    name,
    run: async (script, options = {}) => {
      const title = options.title ?? "?";
      ran.push(title);
      sent.push(script.text);
      writeFileSync(join(folder, "os-release"), fake.facts);
      writeFileSync(join(folder, "machine-id"), `${/@machineId=(.*)/.exec(fake.facts)?.[1] ?? ""}\n`);
      if (title === "facts") return { code: 0, stdout: fake.facts, stderr: "", ms: 1 };
      const { code, ...said } = await perform(`{\n:\n${placed(script.text)}\n} </dev/null\nexit $?\n`, options.onLine);
      if (code === null) throw new RemoteError("the connection broke", { host: name, reason: "disconnected" });
      if (!(options.ok ?? [0]).includes(code))
        throw new RemoteError(`failed: ${title}`, { host: name, reason: "exit", code, stderr: said.stderr });
      return { code, ...said, ms: 1 };
    },
    upload: () => Promise.reject(new Error("a fake host takes no uploads")),
  };
  return Object.assign(fake, { remote, ran, sent, dieAt: (line: RegExp | undefined) => void (deadly = line) });
}
