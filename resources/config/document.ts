import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  type Document,
  type ErrorCode,
  type Node,
  type Pair,
  type YAMLMap,
  type YAMLError,
} from "yaml";
import { mend } from "./lookalikes";
import type { Path, Position, Problem } from "./problems";

const MOST_DEPTH = 64;
/** Values that aliases may repeat in all: enough for any honest file, too few for a bomb. */
const MOST_ALIASED = 100_000;

export interface YamlFile {
  value: unknown;
  problems: Problem[];
  /** Whether the problems leave the value whole enough to be judged. */
  usable: boolean;
  at: (path: Path, part?: "key" | "value") => Position;
  /** The text of a plain number, switch or word as it stands in the file: `1.10`, not 1.1. */
  source: (path: Path) => string | undefined;
}

const START: Position = { line: 1, col: 1 };

const ADVICE: Partial<Record<ErrorCode, string>> = {
  TAB_AS_INDENT: "a tab is used to indent; write spaces",
  DUPLICATE_KEY: "the key stands here twice; write it once",
  MULTIPLE_DOCS: "a second document begins; write one cluster per file",
  MULTILINE_IMPLICIT_KEY: "a key without its colon; write `key:` before the lines that belong to it",
  BLOCK_AS_IMPLICIT_KEY: "a second colon on the line; write text that holds `: ` in quotes",
  BAD_INDENT:
    "does not fit the lines around it; write all entries of a section at the same column and close every bracket",
  BAD_SCALAR_START: "text cannot begin with this sign; write it in quotes",
  BAD_DQ_ESCAPE: "an unknown escape; write it in single quotes, or \\\\ for a backslash",
  NON_STRING_KEY: "a list or section is used as a key; write a plain word",
  TAG_RESOLVE_FAILED: "a tag (!…) is not known; write the value without it, in quotes if it is text",
};

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);
const adviceOf = ({ code, message }: YAMLError) => ADVICE[code] ?? `not YAML: ${lowerFirst(message)}`;

/** Where brackets or indentation go deeper than anyone writes: the parser itself would run out of memory. */
function tooDeep(text: string): number | undefined {
  const indents: number[] = [];
  let [offset, flow, line, indent, fresh] = [0, 0, 0, 0, true];
  for (const token of new Lexer().lex(text)) {
    if (/^[\x02\x18\x1f]$/.test(token)) continue;
    if (token === "{" || token === "[") flow += 1;
    else if (token === "}" || token === "]") flow -= 1;
    else if (token === "-" || token === "?") line += 1;
    if (token.endsWith("\n")) [line, indent, fresh] = [0, 0, true];
    else if (fresh && /^ +$/.test(token)) indent = token.length;
    else if (fresh) {
      while ((indents.at(-1) ?? -1) >= indent) indents.pop();
      indents.push(indent);
      fresh = false;
    }
    if (flow + line + indents.length > MOST_DEPTH) return offset;
    offset += token.length;
  }
  return undefined;
}

interface Taken {
  value: unknown;
  faults: { node: Node; message: string }[];
}

/** The plain value of a document. Aliases are followed, within bounds. */
function take(document: Document.Parsed): Taken {
  const faults: Taken["faults"] = [];
  let aliased = 0;
  const fault = (node: Node, message: string) => void faults.push({ node, message });
  const plain = (node: unknown, open: readonly unknown[]): unknown => {
    if (open.length > 1) aliased += 1;
    if (aliased > MOST_ALIASED) return null;
    if (isScalar(node)) return node.value;
    if (isSeq(node)) return node.items.map((item) => plain(item, open));
    if (isMap(node)) return Object.fromEntries(node.items.map(({ key, value }) => [keyText(key), plain(value, open)]));
    if (!isAlias(node)) return null;
    const target = node.resolve(document);
    if (target === undefined) fault(node, `no &${node.source} stands before it; write the value itself`);
    else if (open.includes(target)) fault(node, "the alias stands within its own anchor; write the value itself");
    else return followed(node, plain(target, [...open, target]));
    return null;
  };
  const followed = (node: Node, value: unknown) => {
    if (aliased > MOST_ALIASED && faults.length === 0)
      fault(node, `aliases expand to more than ${MOST_ALIASED} values; write the values themselves`);
    return value;
  };
  return { value: plain(document.contents, [undefined]), faults };
}

const keyText = (key: unknown) => String(isScalar(key) ? key.value : key);

interface Place {
  key?: Node;
  value?: Node;
}

/** The nodes at a path; of a path that ends beyond the document, the last there is. */
function placeOf(document: Document.Parsed, path: Path): Place & { exact: boolean } {
  let place: Place = document.contents === null ? {} : { value: document.contents };
  for (const key of path) {
    const node = isAlias(place.value) ? place.value.resolve(document) : place.value;
    const next = childOf(node, key);
    if (next === undefined) return { ...place, exact: false };
    place = next;
  }
  return { ...place, exact: true };
}

const indexes = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();

/** The entries of a section by key, gathered once: a faulty section of many entries is asked for each of them. */
function pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
  const index = indexes.get(map) ?? new Map(map.items.map((pair) => [keyText(pair.key), pair]));
  indexes.set(map, index);
  return index;
}

function childOf(node: unknown, key: string | number): Place | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(key)];
    return item === undefined ? undefined : { value: item as Node };
  }
  if (!isMap(node)) return undefined;
  const pair = pairsOf(node).get(String(key));
  if (pair === undefined) return undefined;
  return {
    ...(pair.key !== null && { key: pair.key as Node }),
    ...(pair.value !== null && { value: pair.value as Node }),
  };
}

export function readYaml(written: string): YamlFile {
  const lines = new LineCounter();
  for (let i = 0; i !== -1; i = written.indexOf("\n", i) + 1 || -1) lines.addNewLine(i);
  const { text, slips, original } = mend(written);
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(Math.min(original(offset), written.length));
    return line === 0 ? START : { line, col };
  };
  const exactly = (offset: number): Position => lines.linePos(offset);
  const problem = (where: Position, message: string, value?: string): Problem => ({
    ...where,
    path: [],
    severity: "error",
    message,
    ...(value !== undefined && { value }),
  });
  const lookalikes = slips.map(({ offset, found, message }) =>
    problem(exactly(offset), message, JSON.stringify(found)),
  );
  const nothing = { value: undefined, usable: false, at: () => START, source: () => undefined };

  const deep = tooDeep(text);
  if (deep !== undefined)
    return {
      ...nothing,
      problems: [
        ...lookalikes,
        problem(position(deep), `sections stand within sections more than ${MOST_DEPTH} deep; write them flatter`),
      ],
    };

  const document = parseDocument(text, { prettyErrors: false, stringKeys: true, logLevel: "error" });
  const every = [...document.errors, ...document.warnings];
  // What comes after a tab, or after a dash with no blank after it, is out of place for no other reason.
  const tabs = every.filter(({ code }) => code === "TAB_AS_INDENT");
  const dashes = slips.some(({ meant }) => meant === "-");
  const faults = tabs.length > 0 || dashes ? tabs : every;
  const syntax = faults.map((error) => problem(position(error.pos[0]), adviceOf(error)));
  const broken = every.some(({ code }) => code !== "DUPLICATE_KEY");
  if (broken) return { ...nothing, problems: [...lookalikes, ...syntax] };

  const { value, faults: aliases } = take(document);
  const startOf = (node: Node | undefined) => node?.range?.[0];
  const at: YamlFile["at"] = (path, part = "value") => {
    const { key, value: node, exact } = placeOf(document, path);
    const offset = (part === "key" || !exact ? startOf(key) : undefined) ?? startOf(node) ?? startOf(key);
    return offset === undefined ? START : position(offset);
  };
  return {
    value,
    usable: aliases.length === 0,
    problems: [
      ...lookalikes,
      ...syntax,
      ...aliases.map(({ node, message }) => problem(position(startOf(node) ?? 0), message)),
    ],
    at,
    source: (path) => {
      const { value: node, exact } = placeOf(document, path);
      return exact && isScalar(node) ? node.source : undefined;
    },
  };
}
