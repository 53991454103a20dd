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

/** What the library says of itself with its last line, so that a host can tell whether its copy is this one, and whole. */
export const libMark = createHash("sha256").update(text).digest("hex").slice(0, 16);

export const lib = new Command(`${text}\nlib_end=${libMark}`, "# the library of kubexm");

/** The functions by name, and what stands between them. A function begins and ends at the left margin. */
const functions = new Map<string, string>();
const oneLine = /\{ .*\}(?: #.*)?/.source;
const manyLines = /[{(].*\n(?:(?![)}]\n).*\n)*[)}]/.source;
const settings = text.replaceAll(
  new RegExp(`^([a-z_]+)\\(\\) (?:${oneLine}|${manyLines})$`, "gm"),
  (code, name: string) => {
    functions.set(name, code);
    return "";
  },
);

/**
 * Names that a text calls, also those it puts together, as in `read_$fw`. Too many do no harm. Whatever a file holds may
 * stand in it, so every pattern ends after a bounded way.
 */
function namesIn(commented: string): string[] {
  const script = commented.replaceAll(/(?:^|\s)# [^'"\n]{0,200}$/gm, "");
  const prefixes = [...script.matchAll(/(?<![a-z])([a-z]{1,30}_)\$/g)].map(([, prefix = ""]) => prefix);
  const words = new Set(script.match(/\w+/g));
  return [...functions.keys()].filter((name) => words.has(name) || prefixes.some((prefix) => name.startsWith(prefix)));
}

const calls = new Map<string, readonly string[]>();
function callsOf(name: string): readonly string[] {
  const known = calls.get(name) ?? namesIn(functions.get(name) ?? "");
  calls.set(name, known);
  return known;
}

const always = namesIn(settings);
const bare = settings.replaceAll(/^\s*(?:#.*)?\n/gm, "");

/** The part of the library that a script needs: a look takes a fraction of it, and is sent to every host at every run. */
export function libFor(script: Command): Command {
  const needed = new Set([...always, ...namesIn(script.text)]);
  // A set goes on to what is added to it meanwhile.
  for (const name of needed) for (const called of callsOf(name)) needed.add(called);
  const parts = [...functions].filter(([name]) => needed.has(name)).map(([, code]) => code);
  return new Command([bare, ...parts].join("\n"), "# the library of kubexm");
}

/**
 * Where a host keeps it. One place for all versions: the undo scripts in the ledger use the newest, so that a mended bug
 * is mended for what an older version did, too. In return its functions must go on serving old undo scripts.
 */
export const libPath = "/var/lib/kubexm/lib.sh";
