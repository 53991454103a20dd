import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "./shell";

const folder = join(__dirname, "..", "..", "provider", "lib");

/** The sh functions that the pieces of all steps share: provider/lib/*.sh joined. */
const text = readdirSync(folder)
  .filter((name) => name.endsWith(".sh"))
  .sort()
  .map((name) => readFileSync(join(folder, name), "utf8"))
  .join("\n");

export const lib = new Command(text, ". kubexm-lib");

/** Changes with every edit, so that a host never mixes an old library with a new script. */
export const libPath = `/var/lib/kubexm/lib.${createHash("sha256").update(text).digest("hex").slice(0, 12)}`;
