import { z } from "zod";
import { openUrl } from "../../artifacts/sources";
import { metaOf, schemaAt, unwrap } from "./walk";
import { isSecret, pathText, type Path } from "./problems";

type Issue = z.core.$ZodIssue;

export interface Said {
  path: Path;
  message: string;
  /** The fault is the key itself, not its value. */
  key?: true;
  /** The key that was probably meant. */
  meant?: string;
}

const list = (values: readonly unknown[]) => values.map((value) => (value === "" ? '""' : String(value))).join(", ");

/** How many letters must change to make one word of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

const squeeze = (text: string) => text.toLowerCase().replace(/[-_]/g, "").slice(0, 100);

/** The word that was probably meant. */
export function closest(text: string, words: readonly string[]): string | undefined {
  const ranked = words
    .filter((word) => word !== "")
    .map((word) => ({ word, far: distance(squeeze(text), squeeze(word)) }))
    .sort((a, b) => a.far - b.far);
  const [best] = ranked;
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.word.length / 3)) ? best.word : undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "a section (`key: value` lines)",
  record: "a section (`key: value` lines)",
  array: "a list (`- value` lines)",
};

const yaml = (value: unknown) => (typeof value === "string" ? openUrl(value) : JSON.stringify(value));

/** What could stand at a path; of a section, what cannot be left out, with the value that stands there now where it fits. */
function example(root: z.core.$ZodType, path: Path, value?: unknown): string | undefined {
  const schema = schemaAt(root, path);
  if (schema === undefined) return undefined;
  const inner = unwrap(schema);
  if (inner instanceof z.ZodObject) return shortest(inner, value);
  const [first] = metaOf(schema).examples ?? [];
  return first === undefined ? undefined : yaml(first);
}

const holds = (schema: z.core.$ZodType, value: unknown) => z.safeParse(schema, value).success;

function shortest(section: z.ZodObject, value: unknown): string | undefined {
  const needed = Object.entries(section.shape as Readonly<Record<string, z.core.$ZodType>>).filter(
    ([, field]) => !holds(field, undefined),
  );
  const lines = needed.map(([key, field]) => {
    const text = needed.length === 1 && holds(field, value) ? yaml(value) : example(field, []);
    return text === undefined ? undefined : `${key}: ${text}`;
  });
  return lines.length === 0 || lines.includes(undefined) ? undefined : `{ ${lines.join(", ")} }`;
}

/** A number or a switch where text is wanted: in quotes it may be right. */
function unquoted(root: z.core.$ZodType, path: Path, text: string): string {
  if (isSecret(path)) return "must be text; write it in quotes";
  const quoted = JSON.stringify(text);
  const schema = schemaAt(root, path);
  const wrong = schema === undefined ? undefined : z.safeParse(schema, text).error?.issues[0];
  return wrong === undefined
    ? `must be text; write ${quoted} in quotes`
    : `must be text, and ${quoted} ${plainer(wrong.message, example(root, path))}`;
}

function wrongType(issue: z.core.$ZodIssueInvalidType, value: unknown, sample?: string) {
  const wanted = TYPES[issue.expected] ?? issue.expected;
  if (value === undefined) return `is missing; write ${sample === undefined ? wanted : `for example ${sample}`}`;
  if (value === null) return `is empty; write ${wanted} or remove the line`;
  if (issue.expected === "boolean" && typeof value === "string") {
    const meant = /^(yes|on|y|1|true)$/i.test(value)
      ? "true"
      : /^(no|off|n|0|false)$/i.test(value)
        ? "false"
        : undefined;
    if (meant !== undefined) return `must be true or false; write ${meant}`;
  }
  if (typeof value === "string" && /^(number|int)$/.test(issue.expected) && /^\d+$/.test(value))
    return `must be ${wanted}; write ${value} without quotes`;
  return `must be ${wanted}${sample === undefined ? "" : `; write for example ${sample}`}`;
}

function wrongSize(bound: "least" | "most", limit: number | bigint, origin: string) {
  if (origin === "string")
    return bound === "least"
      ? "is empty; write a value or remove it"
      : `is longer than ${limit} letters; write at most ${limit}`;
  if (origin === "array") {
    const entries = `${limit} ${limit === 1 ? "entry" : "entries"}`;
    return bound === "least"
      ? `needs at least ${entries}; write ${limit === 1 ? "it as a line" : "them as lines"} \`- value\``
      : `takes at most ${entries}; remove the others`;
  }
  return `must be at ${bound} ${limit}; write a number from there`;
}

function wrongChoice(values: readonly unknown[], value: unknown): string {
  if (value === undefined) return `is missing; write ${values.length === 1 ? list(values) : `one of ${list(values)}`}`;
  if (values.length === 1) return `must be ${list(values)}; write that`;
  const meant = typeof value === "string" ? closest(value, values.map(String)) : undefined;
  return `must be one of ${list(values)}${meant === undefined ? "; write one of them" : `; write ${meant}`}`;
}

const isShallow = ({ code, path }: Issue) => path.length === 0 && (code === "invalid_type" || code === "invalid_value");

/** Of a union, the complaints of the form that was probably meant: the one that came furthest. */
const furthest = (branches: readonly (readonly Issue[])[]): readonly Issue[] =>
  branches.find((issues) => !issues.some(isShallow)) ?? branches.at(-1) ?? [];

/** What the reader is told about an issue of zod's. */
export function words(
  root: z.core.$ZodType,
  issue: Issue,
  valueAt: (path: Path) => unknown,
  source: (path: Path) => string | undefined,
): Said[] {
  const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
  const value = valueAt(path);
  const say = (message: string): Said[] => [{ path, message }];
  switch (issue.code) {
    case "invalid_type":
      if (issue.expected === "string" && (typeof value === "number" || typeof value === "boolean"))
        return say(unquoted(root, path, source(path) ?? String(value)));
      return say(wrongType(issue, value, example(root, path, value)));
    case "too_small":
      return say(wrongSize("least", issue.minimum, issue.origin));
    case "too_big":
      return say(wrongSize("most", issue.maximum, issue.origin));
    case "invalid_value":
      return say(wrongChoice(issue.values, value));
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownKey(root, path, key));
    case "invalid_key":
      return issue.issues.map(({ message }) => ({ path, key: true, message: plainer(message, undefined) }));
    case "invalid_union":
      return furthest(issue.errors).flatMap((inner) =>
        words(root, { ...inner, path: [...issue.path, ...inner.path] }, valueAt, source),
      );
    default:
      return say(plainer(issue.message, example(root, path)));
  }
}

/** Zod's own wording of a pattern says nothing to a reader. */
const plainer = (message: string, sample: string | undefined) =>
  message.startsWith("Invalid ")
    ? `does not have the right form; write ${sample === undefined ? "it as docs/cluster-yaml.md says" : `for example ${sample}`}`
    : message;

function unknownKey(root: z.core.$ZodType, path: Path, key: string): Said {
  const keys = keysAt(root, path);
  const meant = closest(key, keys);
  const advice = meant ?? `one of ${list(keys)}, or remove it`;
  return {
    path: [...path, key],
    key: true,
    message: `is not a key of this section; write ${advice}`,
    ...(meant !== undefined && { meant }),
  };
}

/** A key that is missing only because it is misspelt is one fault, not two. */
export function withoutEchoes(said: readonly Said[]): Omit<Said, "meant">[] {
  const misspelt = new Set(
    said.flatMap(({ path, meant }) => (meant === undefined ? [] : [pathText([...path.slice(0, -1), meant])])),
  );
  return said
    .filter(({ path, message }) => !message.startsWith("is missing") || !misspelt.has(pathText(path)))
    .map(({ path, message, key }) => ({ path, message, ...(key && { key }) }));
}

function keysAt(root: z.core.$ZodType, path: Path): string[] {
  const schema = schemaAt(root, path);
  const objects = schema === undefined ? [] : optionsOf(schema);
  return objects.flatMap((object) => (object instanceof z.ZodObject ? Object.keys(object.shape as object) : []));
}

function optionsOf(schema: z.core.$ZodType): z.core.$ZodType[] {
  const inner = unwrap(schema);
  return inner instanceof z.ZodUnion ? inner.options.flatMap(optionsOf) : [inner];
}
