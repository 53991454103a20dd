import { Lexer } from "yaml";

/** A place where a look-alike of a YAML sign stands, with what was meant. */
export interface Slip {
  offset: number;
  found: string;
  /** Stands in place of the sign at the offset. */
  meant: string;
  message: string;
}

export interface Mended {
  text: string;
  slips: Slip[];
  /** Where a place in the mended text was in the original. */
  original: (offset: number) => number;
}

interface Kind {
  pattern: RegExp;
  name: string;
  meant: string;
}

/** Each pattern's first group is what stands before the sign, its second the sign. Plain (unquoted) text only is searched. */
const KINDS: readonly Kind[] = [
  { pattern: /((?:^|\n|[,，{]|- )[ \t\u00a0\u3000]*[\w./-]+[ \t]*)(：)/g, name: "a full-width colon", meant: ":" },
  { pattern: /()(，)(?=[ \t]*[\w./-])/g, name: "a full-width comma", meant: "," },
  { pattern: /()([“”„«»])/g, name: "a typographic quotation mark", meant: '"' },
  { pattern: /()([‘’])(?=[\s,}\]]|$)|((?:^|\s))([‘’])/g, name: "a typographic quotation mark", meant: "'" },
  { pattern: /()([\u00a0\u3000])/g, name: "a space that YAML does not know", meant: " " },
];

/** They end, or begin, only what a blank follows. */
const BLANK_AFTER = [":", ",", "-"];

/** Whoever has more of them knows what to look for. */
const MOST_SLIPS = 1000;

interface Token {
  offset: number;
  source: string;
  /** It is the first of its line. */
  first: boolean;
}

/** Unquoted text of the file. What stands in quotes, comments and text blocks may hold any sign. */
function plainText(text: string): Token[] {
  const found: Token[] = [];
  let offset = 0;
  let block = false;
  let plain = false;
  const first = () => text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset).trim() === "";
  for (const source of new Lexer().lex(text)) {
    if (source === "\x1f") {
      plain = true;
      continue;
    }
    if (source === "\x02" || source === "\x18") continue;
    const isHeader = /^[|>]/.test(source) && !plain;
    if (plain && !block) found.push({ offset, source, first: first() });
    if (/^[^\S\n]+$/.test(source) && /[\u00a0\u3000]/.test(source)) found.push({ offset, source, first: first() });
    if (isHeader) block = true;
    else if (plain) block = false;
    plain = false;
    offset += source.length;
  }
  return found;
}

/** `-name: x` is a key that begins with a dash; `-1` and `--v=2` are values. */
function dashOf({ offset, source, first }: Token): Slip[] {
  const [found] = (first && /^-[A-Za-z{["'][^\s]*/.exec(source)) || [];
  if (found === undefined) return [];
  const message = `a dash without a blank after it stands here; write - ${found.slice(1)}`;
  return [{ offset, found, meant: "-", message }];
}

function slipsOf({ offset, source }: Token): Slip[] {
  return KINDS.flatMap(({ pattern, name, meant }) =>
    [...source.matchAll(pattern)].map((match) => {
      const before = match[1] ?? match[3] ?? "";
      const found = match[2] ?? match[4] ?? "";
      const line = before.split("\n").at(-1) ?? "";
      const key = /[\w./-]+$/.exec(line.trim())?.[0] ?? "";
      return {
        offset: offset + match.index + before.length,
        found: `${key}${found}`,
        meant,
        message: `${name} stands here; write ${meant === " " ? "an ordinary space" : `${key}${meant}`}`,
      };
    }),
  );
}

/** Finds look-alikes, and gives the text as it was meant, so that the rest of it can be judged too. */
export function mend(text: string): Mended {
  if (!/[：，“”„«»‘’\u00a0\u3000]|^ *-[A-Za-z{["']/m.test(text))
    return { text, slips: [], original: (offset) => offset };
  const slips = plainText(text)
    .flatMap((token) => [...dashOf(token), ...slipsOf(token)])
    .sort((a, b) => a.offset - b.offset)
    .slice(0, MOST_SLIPS);
  const inserted: number[] = [];
  let mended = "";
  let from = 0;
  for (const { offset, meant } of slips) {
    if (offset < from) continue;
    mended += text.slice(from, offset) + meant;
    from = offset + 1;
    if (BLANK_AFTER.includes(meant) && /[^\s]/.test(text[from] ?? " ")) {
      mended += " ";
      inserted.push(mended.length - 1);
    }
  }
  const added = (offset: number) => inserted.filter((at) => at < offset).length;
  return { text: mended + text.slice(from), slips, original: (offset) => offset - added(offset) };
}
