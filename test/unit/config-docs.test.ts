import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { clusterJsonSchema, clusterPage } from "../../resources/config/docs";
import { clusterFile } from "../../resources/config/schema";
import { metaOf, unwrap } from "../../resources/config/walk";

const PAGES: readonly [string, () => string][] = [
  ["cluster-yaml.md", clusterPage],
  ["cluster.schema.json", clusterJsonSchema],
];

for (const [name, made] of PAGES)
  test(`docs/${name} is what the schema says: npm run docs`, () => {
    const written = readFileSync(join(process.cwd(), "docs", name), "utf8");
    assert.ok(written === made(), `docs/${name} is out of date; run npm run docs`);
  });

interface JsonSchema {
  type?: unknown;
  $ref?: string;
  anyOf?: readonly JsonSchema[];
  [key: string]: unknown;
}

/** Paths of values that are more than plain text in the eyes of an editor, with no place from elsewhere beside them. */
function strict(node: unknown, path: string, free = false): string[] {
  if (typeof node !== "object" || node === null) return [];
  const { type, anyOf = [], ...rest } = node as JsonSchema;
  const placed = anyOf.some(({ $ref }) => $ref === "#/$defs/place");
  const words = typeof type === "string" && ["enum", "const", "pattern"].some((key) => key in rest);
  const own = !free && (words || ["number", "integer", "boolean"].some((one) => one === type)) ? [path] : [];
  return [
    ...own,
    ...anyOf.flatMap((option) => strict(option, path, placed)),
    ...Object.entries(rest).flatMap(([key, value]) => strict(value, `${path}.${key}`)),
  ];
}

test("editors take a value from elsewhere where kubexm does, and find the schema in the package", () => {
  const { $defs, ...schema } = JSON.parse(clusterJsonSchema()) as { $defs: { place: { pattern: string } } };
  assert.deepEqual(strict(schema, ""), []);
  const place = new RegExp($defs.place.pattern);
  for (const text of ["${env:PORT}", "${config:kubexm:port}"]) assert.match(text, place);
  for (const text of ["22", "${env}", "x${env:PORT}"]) assert.doesNotMatch(text, place);
  const { files } = JSON.parse(readFileSync(join(process.cwd(), "package.json"), "utf8")) as { files: string[] };
  assert.ok(files.includes("docs/cluster.schema.json"));
});

/** Paths of fields that say nothing about themselves. */
function silent(schema: z.core.$ZodType, path: string): string[] {
  const inner = unwrap(schema);
  const own = metaOf(schema).description === undefined ? [path] : [];
  if (inner instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = inner.shape;
    return [...own, ...Object.entries(shape).flatMap(([key, field]) => silent(field, `${path}.${key}`))];
  }
  const objects = inner instanceof z.ZodArray ? [inner.element] : inner instanceof z.ZodRecord ? [inner.valueType] : [];
  return [...own, ...objects.flatMap((item) => silent(item, `${path}[]`).filter((found) => found !== `${path}[]`))];
}

test("every field is described", () => {
  assert.deepEqual(
    silent(clusterFile, "file").filter((path) => path !== "file"),
    [],
  );
});
