import type { z } from "zod";
import { openUrl } from "../../artifacts/sources";
import { hostName } from "./leaves";
import { ConfigError, isSecret, touches, type Path, type Problem } from "./problems";
import { runRules } from "./rules";
import { clusterFile, clusterSpec, type ClusterSpec } from "./schema";
import { withoutEchoes, words } from "./words";

type Tree = unknown;

/** A copy of sections and lists; anything else, as it is. */
export function copy(tree: Tree): Tree {
  if (Array.isArray(tree)) return tree.map(copy);
  if (tree === null || typeof tree !== "object" || Object.getPrototypeOf(tree) !== Object.prototype) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, copy(value)]));
}

const isTree = (value: unknown): value is Record<string | number, unknown> =>
  typeof value === "object" && value !== null;

export const valueAt = (tree: Tree, path: Path): unknown =>
  path.reduce<unknown>((at, key) => (isTree(at) && Object.hasOwn(at, key) ? at[key] : undefined), tree);

const MOST_SHOWN = 60;

/** A value as problems show it: never a secret, never a whole section. */
export function shown(path: Path, value: unknown): string | undefined {
  if (value === undefined || (isTree(value) && !Array.isArray(value)) || typeof value === "function") return undefined;
  if (isSecret(path)) return '"***"';
  if (Array.isArray(value) && value.some(isTree)) return undefined;
  const text = JSON.stringify(value, (_, leaf: unknown) => (typeof leaf === "string" ? openUrl(leaf) : leaf));
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

export interface Surroundings {
  /** How a plain value stands in the file. */
  source?: (path: Path) => string | undefined;
  /** What is shown in place of values that came from elsewhere. */
  shownAs?: (path: Path) => string | undefined;
  /** Paths of values that are known later: nothing is said about them. */
  later?: readonly Path[];
}

export interface Checked<T> {
  /** Absent when there are errors. */
  value?: T;
  problems: (Problem & { key?: true })[];
}

const STAND_INS: Readonly<Record<string, (at: number) => unknown>> = {
  name: (at) => `unknown-${at}`,
  address: (at) => `unknown-${at}.invalid`,
};

/** Puts something that holds in place of what does not, so that the rules can judge the rest. Gives what is no longer the user's. */
function repair(tree: Tree, path: Path): Path {
  const last = path.at(-1);
  const parent = path.slice(0, -1);
  const holder = valueAt(tree, parent);
  if (last === undefined || !isTree(holder)) return path;
  if (Array.isArray(holder)) {
    if (parent.at(-1) === "hosts")
      holder[Number(last)] = { name: `unknown-${last}`, address: `unknown-${last}.invalid` };
    else holder.splice(Number(last), 1);
    return parent.at(-1) === "hosts" ? path : parent;
  }
  const standIn = parent.at(-2) === "hosts" ? STAND_INS[last] : undefined;
  if (standIn === undefined) Reflect.deleteProperty(holder, last);
  else holder[last] = standIn(Number(parent.at(-1)));
  return path;
}

const ROUNDS = 4;

function sayings(
  schema: z.ZodType,
  { error }: { error?: z.ZodError | undefined },
  tree: Tree,
  source: (path: Path) => string | undefined = () => undefined,
) {
  return (error?.issues ?? []).flatMap((issue) => words(schema, issue, (path) => valueAt(tree, path), source));
}

/** Everything that is wrong with an input: its form first, then, as far as the form holds, what its parts say to each other. */
function check<T>(
  schema: z.ZodType<T>,
  input: unknown,
  specOf: (value: T) => ClusterSpec,
  prefix: Path,
  { source, shownAs, later = [] }: Surroundings,
): Checked<T> {
  const tree = copy(input);
  const gone = later.map((path) => repair(tree, path));
  const first = schema.safeParse(tree);
  const said = sayings(schema, first, tree, source).filter(({ path }) => !gone.some((g) => touches(g, path)));
  const show = (path: Path) => shownAs?.(path) ?? shown(path, valueAt(input, path));
  const dressed = (problem: Omit<Problem, "value"> & { key?: true }) => {
    const value = problem.key ? undefined : show(problem.path);
    return { ...problem, ...(value !== undefined && { value }) };
  };
  const form = withoutEchoes(said).map((fault) => dressed({ ...fault, severity: "error" as const }));

  let parsed = first;
  for (let round = 0; round < ROUNDS && !parsed.success; round++) {
    // From the back, so that the places in lists stay right.
    for (const { path } of sayings(schema, parsed, tree).reverse()) gone.push(repair(tree, path));
    parsed = schema.safeParse(tree);
  }
  if (!parsed.success) return { problems: form };
  const full = (path: Path): Path => [...prefix, ...path];
  const judged = runRules(specOf(parsed.data))
    .filter(({ path, because = [] }) => ![path, ...because].some((p) => gone.some((g) => touches(g, full(p)))))
    .map(({ path, message, rule, severity }) => dressed({ path: full(path), message, rule, severity }));
  const problems = [...form, ...judged];
  const clean = first.success && later.length === 0 && !problems.some(({ severity }) => severity === "error");
  return { problems, ...(clean && { value: first.data }) };
}

export const checkFile = (input: unknown, surroundings: Surroundings = {}) =>
  check(clusterFile, input, ({ spec }) => spec, ["spec"], surroundings);

/** The cluster of a program: paths without line and column. */
export const checkSpec = (input: unknown): Checked<ClusterSpec> => check(clusterSpec, input, (spec) => spec, [], {});

/** The checked cluster of a program, all defaults filled in; a ConfigError names everything that is wrong. */
export function parseSpec(name: string, input: unknown): ClusterSpec {
  const { value, problems } = checkSpec(input);
  const named: Problem[] = hostName.safeParse(name).success
    ? []
    : [
        {
          path: [],
          severity: "error",
          message: "is not a cluster's name (lower-case letters, digits, - and .); write for example prod",
        },
      ];
  const errors = [...named, ...problems.filter(({ severity }) => severity === "error")];
  if (value === undefined || errors.length > 0) throw new ConfigError(`cluster ${name}:`, errors);
  return value;
}
