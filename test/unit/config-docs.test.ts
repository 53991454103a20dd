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
