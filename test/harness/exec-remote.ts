import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { RemoteError } from "../../provider/errors";
import type { Remote } from "../../provider/ssh/remote";

/** A host reached by any command that runs a shell on it, e.g. `docker exec -i NAME`: the engine without SSH. */
export function execRemote(name: string, argv: readonly string[]): Remote {
  const [program = "sh", ...args] = argv;
  const start = (input: Buffer | string, command: string[], onLine?: (line: string) => void) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve, reject) => {
      const child = spawn(program, [...args, ...command]);
      let [stdout, stderr, rest] = ["", "", ""];
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text;
        const rows = (rest + text).split("\n");
        rest = rows.pop() ?? "";
        for (const row of rows) onLine?.(row);
      });
      child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
      child.stdin.on("error", () => undefined);
      child.on("error", reject).on("close", (code) => resolve({ code: code ?? 255, stdout, stderr }));
      child.stdin.end(input);
    });
  return {
    name,
    run: async (script, options = {}) => {
      const since = Date.now();
      const wrapped = `main() {\n${script.text}\n}\nmain </dev/null\nexit $?\n`;
      const result = await start(wrapped, ["/bin/sh", "-s"], options.onLine);
      if (!(options.ok ?? [0]).includes(result.code)) {
        throw new RemoteError(`${options.title ?? "command"} failed`, {
          host: name,
          reason: "exit",
          code: result.code,
          stderr: result.stderr,
        });
      }
      return { ...result, ms: Date.now() - since };
    },
    upload: async ({ to, path, sha256 }) => {
      const body = readFileSync(path);
      if (createHash("sha256").update(body).digest("hex") !== sha256) throw new Error("wrong checksum");
      const { code, stderr } = await start(body, ["/bin/sh", "-c", `umask 077; cat >'${to}'`]);
      if (code !== 0) throw new Error(stderr);
    },
  };
}
