import { createHash } from "node:crypto";
import type { Looked } from "./engine";
import { libFor } from "./lib";
import { cut, unified } from "./plan";
import { lines, sh, type Command } from "./shell";
import type { Remote } from "./ssh/remote";
import { differences, isSum, type Step } from "./step";

/** Longer contents are not compared. */
const MOST_BYTES = 64 * 1024;
/** Of two that have little in common it would take long to find out what. */
const MOST_EDITS = 500;
const MOST_ROWS = 12;
const MOST_CHARACTERS = 600;
const WIDTH = 160;

/** The checksum of what stands in place of what is wanted. */
const sumFound = ({ step, found }: Looked) =>
  differences(step, found)
    .map((key) => found[key] ?? "")
    .find(isSum);

/** Whether a person may see line by line what differs. */
export const hasLines = (looked: Looked): boolean => {
  const { secret, shown, content } = looked.step;
  return content !== undefined && secret !== true && shown?.secret !== true && sumFound(looked) !== undefined;
};

/** A line of base64 for each: no byte of a file is taken for anything else on the way. */
function contentScript(steps: readonly Step[]): Command {
  const pieces = steps.map(
    ({ content = sh`:` }) => sh`{ ${content}; } 2>/dev/null | head -c ${MOST_BYTES + 1} | base64 -w 0; echo`,
  );
  return lines(libFor(lines(...pieces)), ...pieces);
}

function spelt(sign: string): string {
  const code = (sign.codePointAt(0) ?? 0).toString(16);
  return code.length > 2 ? `\\u{${code}}` : `\\x${code.padStart(2, "0")}`;
}

/** What a terminal would act on, turns the order of what is read, or nobody would see, is spelt out. */
const visible = (row: string) => row.replaceAll(/[\p{Cf}\p{Zl}\p{Zp}]|[^\P{Cc}\t]/gu, spelt);

const narrow = (row: string) => (row.length > WIDTH ? `${row.slice(0, WIDTH)}…` : row);

function brief(all: readonly string[]): readonly string[] {
  const rows = all.map((row) => narrow(visible(row)));
  const head = rows.slice(0, MOST_ROWS);
  return cut(rows, head.filter((_, i) => head.slice(0, i + 1).join("\n").length <= MOST_CHARACTERS).length);
}

function linesBetween(looked: Looked, there: Buffer): readonly string[] {
  if (there.length > MOST_BYTES) return [`what is there is longer than ${MOST_BYTES / 1024} KiB`];
  // It is another by now, or not everybody may read it.
  if (createHash("sha256").update(there).digest("hex") !== sumFound(looked)) return [];
  if (there.includes(0)) return ["what is there is no text"];
  const rows = unified(there.toString("utf8"), looked.step.shown?.text ?? "", { context: 0, most: MOST_EDITS });
  return rows ? brief(rows) : [`more than ${MOST_EDITS} lines differ`];
}

/** What differs in each, line by line: `-` found, `+` wanted; with one exec. Of what could not be had there is none. */
export async function differingLines(remote: Remote, all: readonly Looked[]): Promise<readonly (readonly string[])[]> {
  const script = contentScript(all.map(({ step }) => step));
  const { stdout } = await remote.run(script, { title: "lines that differ", timeout: 60 });
  const coded = stdout.split("\n");
  return all.map((looked, i) => linesBetween(looked, Buffer.from(coded[i] ?? "", "base64")));
}
