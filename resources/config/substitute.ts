import { z } from "zod";
import { isSecret, type Path, type Problem } from "./problems";
import { clusterFile } from "./schema";
import { USUAL_FILE } from "./read";
import { schemaAt, unwrap } from "./walk";

export type Values = Readonly<Record<string, string | undefined>>;

export interface Sources {
  env?: Values;
  /** Values of the Pulumi stack's configuration, by their names. `later`: they are not at hand, and count as right. */
  config?: Values | "later";
  /** Names of those that were set with --secret: they may stand only where the state keeps them encrypted. */
  secrets?: readonly string[];
  /** The file they are for, which commands in advice name where it is not the usual one. */
  file?: string;
}

/** What a stack's configuration gives. */
export type StackValues = Pick<Sources, "config" | "secrets">;

/** A stack's configuration, by names with and, for the project's own, without the project before them. */
export function stackSources(
  project: string,
  rows: readonly { key: string; value: string; secret: boolean }[],
): StackValues {
  const own = `${project}:`;
  const values = rows.flatMap(({ key, value, secret }) =>
    [key, ...(key.startsWith(own) ? [key.slice(own.length)] : [])].map((name) => ({ name, value, secret })),
  );
  return {
    config: Object.fromEntries(values.map(({ name, value }) => [name, value])),
    secrets: values.filter(({ secret }) => secret).map(({ name }) => name),
  };
}

export interface Substituted {
  value: unknown;
  problems: Problem[];
  /** Paths of values that came from elsewhere, with what stands in the file. */
  shownAs: Map<string, string>;
  /** Paths of values that are not at hand. */
  later: Path[];
}

const PLACE = /\$\{(env|config):([^}]*)(\}?)/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]*$/;

const HOW: Readonly<Record<"env" | "config", (name: string, path: Path, file?: string) => string>> = {
  env: (name) => `the environment variable ${name} is not set; write it before the command: ${name}=…`,
  config: (name, path, file = USUAL_FILE) => {
    const set = `config set ${isSecret(path) ? `--secret ${name}` : `${name} VALUE`}`;
    const named = file === USUAL_FILE ? "" : ` -f ${/\s/.test(file) ? JSON.stringify(file) : file}`;
    return `the stack's configuration has no ${name}; write kubexm ${set}${named}, or in a program's folder pulumi ${set}`;
  },
};

export const placeKey = (path: Path): string => path.map(String).join("\0");

/** A value that is nothing but one place takes the type the schema wants there; all others are text. */
function typed(path: Path, text: string): unknown {
  const schema = schemaAt(clusterFile, path);
  const inner = schema === undefined ? undefined : unwrap(schema);
  if (inner instanceof z.ZodNumber && /^-?\d+$/.test(text)) return Number(text);
  if (inner instanceof z.ZodBoolean && /^(true|false)$/.test(text)) return text === "true";
  return text;
}

/** Puts values from the environment and the stack's configuration where `${env:NAME}` and `${config:NAME}` stand. */
export function substitute(tree: unknown, sources: Sources): Substituted {
  const problems: Problem[] = [];
  const shownAs = new Map<string, string>();
  const later: Path[] = [];

  const fill = (text: string, path: Path): unknown => {
    const value = JSON.stringify(text);
    const fault = (message: string) => void problems.push({ path, severity: "error", value, message });
    const filled = text.replace(PLACE, (place, from: "env" | "config", name: string, end: string) => {
      const values = sources[from];
      const found = values === "later" ? undefined : values?.[name];
      if (end === "" || !NAME.test(name)) fault(`is not a place for a value; write \${${from}:NAME}`);
      else if (values === "later") later.push(path);
      else if (found === undefined) fault(HOW[from](name, path, sources.file));
      else if (from === "config" && sources.secrets?.includes(name) && !isSecret(path))
        fault(`is a secret, and could be read in the state from here; set ${name} without --secret`);
      else return found;
      return place;
    });
    for (const [, kind = "", name = ""] of text.matchAll(/\$\{(\w+):([^}]*)\}/g)) {
      const meant = kind.toLowerCase();
      if (meant !== kind && meant in HOW) fault(`is taken as it stands; write \${${meant}:${name}}`);
    }
    if (filled === text) return text;
    shownAs.set(placeKey(path), value);
    return typed(path, filled);
  };
  const walk = (node: unknown, path: Path): unknown => {
    if (typeof node === "string") return node.includes("${") ? fill(node, path) : node;
    if (Array.isArray(node)) return node.map((item, i) => walk(item, [...path, i]));
    if (typeof node !== "object" || node === null) return node;
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, walk(item, [...path, key])]));
  };
  return { value: walk(tree, []), problems, shownAs, later };
}
