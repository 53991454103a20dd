/** Stands for a value that Pulumi learns only later; it arrives in check and diff of a preview. */
const unknownValue = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

type Path = readonly PropertyKey[];

/** Paths of all values that are not known yet. */
export function unknownPaths(value: unknown, at: Path = []): Path[] {
  if (value === unknownValue) return [at];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => unknownPaths(item, [...at, key]));
}

const startsWith = (path: Path, head: Path) => head.every((key, i) => String(path[i]) === String(key));

/** Whether a complaint about `path` may be due to a value that is not known yet. */
export const maybeUnknown = (unknown: readonly Path[], path: Path): boolean =>
  unknown.some((known) => startsWith(path, known) || startsWith(known, path));
