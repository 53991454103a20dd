import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { isHome, localPath } from "../../provider/ssh/spec";
import { localFile } from "./leaves";
import { clusterSpec, type ClusterSpec } from "./schema";
import { schemaAt, unwrap } from "./walk";

const LOCAL: readonly z.core.$ZodType[] = [localPath, localFile];
const isWhole = (path: string) => path === "" || isHome(path);

function placed(folder: string, schema: z.core.$ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return value;
  const inside = (key: string | number, item: unknown) => placed(folder, schemaAt(schema, [key]), item);
  if (typeof value === "string")
    return LOCAL.includes(unwrap(schema)) && !isWhole(value) ? resolve(folder, value) : value;
  if (Array.isArray(value)) return value.map((item, i) => inside(i, item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inside(key, item)] as const));
}

/** A file that is named without its folder stands beside the cluster file: the provider works in a folder of its own. */
export const besideFile = (file: string, spec: ClusterSpec): ClusterSpec =>
  placed(dirname(resolve(file)), clusterSpec, spec) as ClusterSpec;
