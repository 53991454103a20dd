import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError, textOf } from "../errors";
import { later } from "../later";
import { Secret } from "../shell";
import type { Step } from "../step";
import { file, type FileOptions } from "./file";

const folder = join(__dirname, "..", "..", "..", "templates");
const handlebars = later(__filename, "handlebars") as () => typeof import("handlebars");
const compiled = new Map<string, ReturnType<ReturnType<typeof handlebars>["compile"]>>();

/** Renders templates/NAME.hbs. Strict: a variable that is not given is an error. Nothing is escaped, as no target is HTML. */
export function render(name: string, data: object): string {
  const template =
    compiled.get(name) ??
    handlebars().compile(readFileSync(join(folder, `${name}.hbs`), "utf8"), { strict: true, noEscape: true });
  compiled.set(name, template);
  try {
    return template(data);
  } catch (error) {
    throw new ArgumentError(`templates/${name}.hbs`, textOf(error));
  }
}

/** The data as it goes to the host, and whether it holds a secret. */
function revealed(data: unknown): { data: unknown; secret: boolean } {
  if (data instanceof Secret) return { data: data.reveal(), secret: true };
  if (typeof data !== "object" || data === null) return { data, secret: false };
  const entries = Object.entries(data).map(([key, value]) => [key, revealed(value)] as const);
  const plain = entries.map(([key, value]) => [key, value.data] as const);
  return {
    data: Array.isArray(data) ? plain.map(([, value]) => value) : Object.fromEntries(plain),
    secret: entries.some(([, value]) => value.secret),
  };
}

/** A file made from templates/NAME.hbs; with a secret in its data all of it is one. */
export function template(path: string, name: string, given: object, options?: FileOptions): Step {
  const { data, secret } = revealed(given);
  const text = render(name, data as object);
  return file(path, secret ? new Secret(text) : text, options);
}
