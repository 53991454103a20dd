export type Path = readonly (string | number)[];
export type Severity = "error" | "warning";

export interface Position {
  line: number;
  col: number;
}

/** One thing that is wrong: where, what stands there, what is wrong with it and what to write instead. */
export interface Problem extends Partial<Position> {
  path: Path;
  severity: Severity;
  /** The rule between fields that found it; absent for what a field's own form says. */
  rule?: string;
  /** As it is to be shown; absent when nothing stands there. */
  value?: string;
  message: string;
}

const SECRET = /^(password|passphrase|privateKey|sudoPassword)$/;

/** Whether a value there is never shown, and encrypted in the state. */
export const isSecret = (path: Path): boolean => path.some((key) => SECRET.test(String(key)));

const PLAIN_KEY = /^[A-Za-z_][\w-]*$/;

export function pathText(path: Path): string {
  return path
    .map((key, i) => {
      if (typeof key === "number") return `[${key}]`;
      if (!PLAIN_KEY.test(key)) return `[${JSON.stringify(key)}]`;
      return i === 0 ? key : `.${key}`;
    })
    .join("");
}

/** `cluster.yaml:12:7 spec.hosts[0].port: "22x": what is wrong; write instead …` */
export function problemText(source: string, { line, col, path, severity, value, message }: Problem): string {
  const where = line === undefined ? source : `${source}:${line}:${col ?? 1}`;
  const what = [pathText(path), value].filter((part) => part !== undefined && part !== "").join(": ");
  const said = severity === "warning" ? `warning: ${message}` : message;
  return what === "" ? `${where} ${said}` : `${where} ${what}: ${said}`;
}

const MOST_LINES = 100;

export function problemsText(source: string, problems: readonly Problem[]): string {
  const shown = problems.slice(0, MOST_LINES).map((problem) => problemText(source, problem));
  const rest = problems.length - shown.length;
  return [...shown, ...(rest > 0 ? [`… and ${rest} more`] : [])].join("\n");
}

/** A cluster that cannot be right. The message is complete: all problems, one per line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Lets Pulumi print the message alone, without a stack, when a program gives the arguments. */
  readonly __pulumiRunError = true;
  constructor(
    readonly source: string,
    readonly problems: readonly Problem[],
  ) {
    super(problemsText(source, problems));
  }
}

/** The file cannot be read at all. */
export class UnreadableError extends Error {
  override readonly name = "UserError";
}

/** Whether one path lies on the way to the other. `*` stands for any key. */
export function touches(a: Path, b: Path): boolean {
  const length = Math.min(a.length, b.length);
  return a.slice(0, length).every((key, i) => key === "*" || b[i] === "*" || String(key) === String(b[i]));
}
