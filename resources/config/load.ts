import { checkFile } from "./check";
import { readYaml } from "./document";
import { besideFile } from "./local-files";
import { isNotBuilt } from "./rules-not-built";
import { ConfigError, problemText, type Path, type Problem, type Severity } from "./problems";
import type { ClusterSpec } from "./schema";
import { placeKey, substitute, type Sources } from "./substitute";

export interface ClusterFile {
  name: string;
  spec: ClusterSpec;
}

export interface Judged {
  /** Absent when there are errors. */
  cluster?: ClusterFile;
  /** Errors and warnings in the order of the file, each with line and column. */
  problems: Problem[];
}

const inOrder = (a: Problem, b: Problem) => (a.line ?? 1) - (b.line ?? 1) || (a.col ?? 1) - (b.col ?? 1);

/** Reads and judges the text of a cluster file. Never throws because of what stands in it. */
export function judgeCluster(text: string, sources: Sources = {}): Judged {
  const bad = text.indexOf("\ufffd");
  if (bad !== -1) return { problems: [notText(text, bad)] };
  const file = readYaml(text.replace(/^\ufeff/, ""));
  const judged = judge(file.value, sources, file);
  const placed = judged.problems.map(({ key, ...problem }) => ({
    ...problem,
    ...file.at(problem.path, key ? "key" : "value"),
  }));
  const problems = [...file.problems, ...placed].sort(inOrder);
  const clean = !problems.some(({ severity }) => severity === "error");
  return { problems, ...(clean && judged.cluster !== undefined && { cluster: judged.cluster }) };
}

function judge(tree: unknown, sources: Sources, { usable, source }: ReturnType<typeof readYaml>) {
  if (!usable) return { problems: [] };
  if (tree === null || tree === undefined) {
    const message = "the file is empty; write apiVersion, kind, metadata and spec";
    return { problems: [{ path: [] as Path, severity: "error" as const, message, key: undefined }] };
  }
  const { value, problems: missing, shownAs, later } = substitute(tree, sources);
  const { value: cluster, problems } = checkFile(value, {
    source,
    shownAs: (path) => shownAs.get(placeKey(path)),
    later,
  });
  const unfilled = new Set(missing.map(({ path }) => placeKey(path)));
  return {
    // What could not be filled in is one problem, not two.
    problems: [
      ...missing.map((problem) => ({ ...problem, key: undefined })),
      ...problems.filter(({ path }) => !unfilled.has(placeKey(path))),
    ],
    ...(cluster !== undefined && { cluster: { name: cluster.metadata.name, spec: cluster.spec } }),
  };
}

/** The name in the text of a cluster file, whatever else is wrong with it. */
export function clusterName(text: string): string | undefined {
  const { value } = readYaml(text.replace(/^\ufeff/, ""));
  const name = (value as { metadata?: { name?: unknown } } | undefined)?.metadata?.name;
  return typeof name === "string" ? name : undefined;
}

function notText(text: string, at: number): Problem {
  const before = text.slice(0, at).split("\n");
  const message = "a sign that is not UTF-8 stands here; save the file as UTF-8";
  return { path: [], severity: "error", line: before.length, col: (before.at(-1)?.length ?? 0) + 1, message };
}

export interface Told extends ClusterFile {
  /** Warnings about the file, a line each. */
  warnings: string[];
  /** Those for which `up` refuses the file. */
  notBuilt: string[];
}

/** The cluster in the text of a file, and what is worth a thought in it; a ConfigError names everything that is wrong. */
export function tellCluster(text: string, file: string, sources: Sources = {}): Told {
  const { cluster, problems } = judgeCluster(text, { ...sources, file });
  const of = (wanted: Severity) => problems.filter(({ severity }) => severity === wanted);
  if (cluster === undefined) throw new ConfigError(file, of("error"));
  const warnings = of("warning");
  return {
    name: cluster.name,
    spec: besideFile(file, cluster.spec),
    warnings: warnings.map((problem) => problemText(file, problem)),
    notBuilt: warnings.filter(isNotBuilt).map((problem) => problemText(file, { ...problem, severity: "error" })),
  };
}

/** The same without the warnings. */
export function parseCluster(text: string, file: string, sources: Sources = {}): ClusterFile {
  const { name, spec } = tellCluster(text, file, sources);
  return { name, spec };
}
