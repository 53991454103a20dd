import { later } from "./later";
import type { Drift, Step } from "./step";

const diff = later(__filename, "diff") as () => typeof import("diff");

const MAX_LINES = 60;

function bodyOf(step: Step | undefined): string {
  if (!step?.shown) return "";
  return step.shown.secret ? "(secret)" : step.shown.text;
}

/** The first rows, and how many more there are. */
export const cut = (rows: readonly string[], most: number): readonly string[] =>
  rows.length > most ? [...rows.slice(0, most), `… ${rows.length - most} more lines`] : rows;

/** The changed lines between two contents, as a unified diff without its file header; undefined: more than `most` are. */
export function unified(
  before: string,
  after: string,
  { context, most = Infinity }: { context: number; most?: number },
): string[] | undefined {
  const options = { context, maxEditLength: most };
  const patch = diff().createTwoFilesPatch("a", "b", before, after, undefined, undefined, options);
  return patch
    ?.split("\n")
    .slice(3)
    .filter((row) => row !== "");
}

function contentDiff(before: Step | undefined, after: Step | undefined): string[] {
  if (!before?.shown && !after?.shown) return [];
  if (before?.shown?.secret || after?.shown?.secret)
    return before?.shown?.text === after?.shown?.text ? [] : ["    (secret content)"];
  const [, ...rows] = unified(bodyOf(before), bodyOf(after), { context: 2 }) ?? [];
  const told = rows.filter((row) => !row.startsWith("\\"));
  return cut(told, MAX_LINES).map((row) => `    ${row}`);
}

const words = (step: Step) =>
  Object.entries(step.want)
    .filter(([key]) => key !== "sha256" && key !== "type")
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");

/** What a change of arguments means, step by step: `+` new, `~` changed, `-` taken back, `!` drifted. */
export function planText(before: readonly Step[], after: readonly Step[], drift: readonly Drift[]): string[] {
  const find = (steps: readonly Step[], id: string) => steps.find((step) => step.id === id);
  const gone = before.filter((step) => !find(after, step.id)).map((step) => `- ${step.id}`);
  const rest = after.flatMap((step) => {
    const old = find(before, step.id);
    if (!old) return [`+ ${step.id} ${words(step)}`.trimEnd(), ...contentDiff(undefined, step)];
    if (JSON.stringify(old.want) !== JSON.stringify(step.want))
      return [`~ ${step.id} ${words(step)}`.trimEnd(), ...contentDiff(old, step)];
    const drifted = drift.find((item) => item.step === step.id);
    return drifted ? [`! ${step.id}: found ${drifted.found}, want ${drifted.want}`] : [];
  });
  return [...gone, ...rest];
}
