import type { Path, Severity } from "./problems";
import type { ClusterSpec } from "./schema";

export interface Finding {
  path: Path;
  message: string;
  /** Other paths the finding rests on. */
  because?: Path[];
}

/** What two or more fields must say to each other. */
export interface Rule {
  name: string;
  severity: Severity;
  check: (spec: ClusterSpec) => Finding[];
}
