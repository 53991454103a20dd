import { z } from "zod";
import type { Path } from "./problems";

type Schema = z.core.$ZodType;

/** What stands within optional, default and transform. */
export function unwrap(schema: Schema): Schema {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return unwrap(schema.unwrap());
  return schema;
}

/** The schema of the value at a path of the input, when there is one. */
export function schemaAt(schema: Schema, path: Path): Schema | undefined {
  const [key, ...rest] = path;
  const inner = unwrap(schema);
  if (key === undefined) return schema;
  const next = children(inner, key).flatMap((child) => schemaAt(child, rest) ?? []);
  return next[0];
}

function children(schema: Schema, key: string | number): Schema[] {
  if (schema instanceof z.ZodObject) {
    const shape = schema.shape as Readonly<Record<string, Schema>>;
    const child = Object.hasOwn(shape, key) ? shape[key] : undefined;
    return child === undefined ? [] : [child];
  }
  if (schema instanceof z.ZodArray) return typeof key === "number" ? [schema.element] : [];
  if (schema instanceof z.ZodRecord) return [schema.valueType];
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => children(unwrap(option), key));
  return [];
}

interface Meta {
  description?: string;
  examples?: readonly unknown[];
}

const innerOf = (schema: Schema): Schema[] => {
  if (schema instanceof z.ZodPipe) return [schema.in];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return [schema.unwrap()];
  return schema instanceof z.ZodUnion ? [...schema.options] : [];
};

/** Description and examples, the outer before the inner. */
export function metaOf(schema: Schema): Meta {
  const own = (z.globalRegistry.get(schema) ?? {}) as Meta;
  return innerOf(schema).reduce<Meta>((meta, inner) => ({ ...metaOf(inner), ...meta }), own);
}
