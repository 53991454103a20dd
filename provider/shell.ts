import { inspect } from "node:util";

const MASK = "***";
/** A line of a secret that is shorter says nothing alone, and is found everywhere. */
const TELLING = 8;

/** A value that may go to a host, and nowhere else: it prints as `***`. */
export class Secret {
  readonly #value: string;
  /** Pieces of the value that are to be masked alone, too. */
  readonly #parts: readonly string[];
  constructor(value: string, parts: readonly string[] = []) {
    this.#value = value;
    this.#parts = parts;
  }
  reveal(): string {
    return this.#value;
  }
  get all(): readonly string[] {
    return [this.#value, ...this.#parts];
  }
  toString(): string {
    return MASK;
  }
  toJSON(): string {
    return MASK;
  }
  [inspect.custom](): string {
    return MASK;
  }
}

/** Shell text: `text` is for the wire only, printing gives the masked form. Made by {@link sh}. */
export class Command {
  readonly #text: string;
  readonly #masked: string;
  readonly #secrets: readonly string[];
  constructor(text: string, masked: string, secrets: readonly string[] = []) {
    this.#text = text;
    this.#masked = masked;
    this.#secrets = secrets;
  }
  get text(): string {
    return this.#text;
  }
  toString(): string {
    return this.#masked;
  }
  toJSON(): string {
    return this.#masked;
  }
  [inspect.custom](): string {
    return this.#masked;
  }
  get secrets(): readonly string[] {
    return this.#secrets;
  }
  /** Takes this command's secrets out of what a host said about it; the longest first, as one may be part of another. */
  redact(said: string): string {
    const lines = this.#secrets.flatMap((secret) => secret.split("\n")).filter((line) => line.length >= TELLING);
    const secrets = [...this.#secrets, ...lines].sort((a, b) => b.length - a.length);
    return secrets.reduce((text, secret) => (secret === "" ? text : text.replaceAll(secret, MASK)), said);
  }
}

export type ShellValue = string | number | Secret | Command | readonly (string | number | Secret)[];

/** One word for a POSIX shell, whatever the text holds. NUL cannot be carried by any shell and is refused. */
export function quote(text: string): string {
  if (text.includes("\0")) throw new TypeError("a NUL byte cannot stand in shell text");
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function render(value: ShellValue, wire: boolean): string {
  if (value instanceof Command) return wire ? value.text : value.toString();
  if (value instanceof Secret) return wire ? quote(value.reveal()) : MASK;
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") return quote(String(value));
  return value.map((item) => render(item, wire)).join(" ");
}

/** The only way to build shell text: every `${}` becomes one quoted word (a list becomes several), a Command stays as it is. */
export function sh(strings: TemplateStringsArray, ...values: ShellValue[]): Command {
  const build = (wire: boolean) =>
    strings.raw.reduce((text, part, i) => {
      const value = values[i - 1];
      return text + (value === undefined ? "" : render(value, wire)) + part;
    });
  const text = build(true);
  return new Command(text, values.some(printsOtherwise) ? build(false) : text, values.flatMap(secretsOf));
}

function printsOtherwise(value: ShellValue): boolean {
  if (value instanceof Command) return value.toString() !== value.text;
  return value instanceof Secret || (typeof value === "object" && value.some(printsOtherwise));
}

function secretsOf(value: ShellValue): readonly string[] {
  if (value instanceof Command) return value.secrets;
  if (value instanceof Secret) return value.all;
  return typeof value === "object" ? value.flatMap(secretsOf) : [];
}

/** Text that stands in a quoted here-document as it is. Refused when it could end the document. */
export function verbatim(text: string, stop: string): Command {
  if (text.split("\n").includes(stop)) throw new TypeError(`the text may not hold the line ${stop}`);
  return new Command(text, text);
}

/** Shell text with the shell's own `${}` in it; only ever called with a constant, which a lint rule sees to. */
export const literal = (text: string): Command => new Command(text, text);

/** A bare word that is part of a name in shell text, like the number of a function. */
export function word(text: string | number): Command {
  if (!/^\w+$/.test(String(text))) throw new TypeError(`not a bare word: ${text}`);
  return new Command(String(text), String(text));
}

/** Several commands, one per line. */
export function lines(...commands: readonly Command[]): Command {
  return new Command(
    commands.map((c) => c.text).join("\n"),
    commands.map(String).join("\n"),
    commands.flatMap((c) => c.secrets),
  );
}
