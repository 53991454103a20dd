import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError } from "../errors";
import { later } from "../later";
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
    throw new ArgumentError(`templates/${name}.hbs`, error instanceof Error ? error.message : String(error));
  }
}

/** A file made from templates/NAME.hbs. */
export const template = (path: string, name: string, data: object, options?: FileOptions): Step =>
  file(path, render(name, data), options);
