export type Table = Record<string, unknown>;
const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The second over the first: tables grow together, anything else is replaced. */
export function merge(base: Table, over: Readonly<Table>): Table {
  const merged = Object.entries(over).map(([key, value]): [string, unknown] => {
    const below = base[key];
    return [key, isTable(below) && isTable(value) ? merge(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(merged) };
}
