import { readFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { needCommands } from "../lab/docker.js";
import { run } from "../toolchain/process.js";
import { root } from "./root.js";

/** What a command says of its version, in one line. */
export async function versionOf(command: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await run(command, args);
  return (stdout || stderr).trim().split("\n")[0] ?? "";
}

function ownVersion(): string {
  return (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
}

/** Also on a machine where no lab has been yet. */
export async function labVersions(): Promise<Record<string, string>> {
  await needCommands({ docker: "docker.io" }, "the bench");
  const git = await run("git", ["-C", root, "rev-parse", "--short", "HEAD"]).catch(() => undefined);
  return {
    kubexm: [ownVersion(), git?.stdout.trim() ?? ""].join(" ").trim(),
    node: process.version,
    kernel: release(),
    docker: await versionOf("docker", "--version"),
  };
}
