import type { Path, Severity } from "./problems";
import type { ClusterSpec } from "./schema";

export interface Finding {
  path: Path;
  message: string;
  /** Other paths the finding rests on. */
  because?: Path[];
}

export interface Rule {
  name: string;
  severity: Severity;
  check: (spec: ClusterSpec, name: string) => Finding[];
}

export const RULES: readonly Rule[] = [];

export const runRules = (spec: ClusterSpec, name: string) =>
  RULES.flatMap(({ severity, check }) => check(spec, name).map((finding) => ({ ...finding, severity })));
