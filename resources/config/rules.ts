import type { Severity } from "./problems";
import type { Finding, Rule } from "./rule";
import { FIELD_RULES } from "./rules-fields";
import { HOST_RULES } from "./rules-hosts";
import { NETWORK_RULES } from "./rules-network";
import { NOT_BUILT_RULES } from "./rules-not-built";
import { VERSION_RULES } from "./rules-versions";
import type { ClusterSpec } from "./schema";

export const RULES: readonly Rule[] = [
  ...HOST_RULES,
  ...NETWORK_RULES,
  ...VERSION_RULES,
  ...FIELD_RULES,
  ...NOT_BUILT_RULES,
];

export const runRules = (spec: ClusterSpec): (Finding & { rule: string; severity: Severity })[] =>
  RULES.flatMap(({ name, severity, check }) => check(spec).map((finding) => ({ ...finding, rule: name, severity })));
