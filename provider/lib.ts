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

/** First line of the library, so that a host can tell whether its copy is this one. */
export const libMark = `# kubexm ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;

export const lib = new Command([libMark, text].join("\n"), "# the library of kubexm");

/**
 * Where a host keeps it. One place for all versions: the undo scripts in the ledger use the newest, so that a mended bug
 * is mended for what an older version did, too. In return its functions must go on serving old undo scripts.
 */
export const libPath = "/var/lib/kubexm/lib.sh";
