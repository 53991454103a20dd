import { sh } from "../shell";
import type { Step } from "../step";
import { checkedName } from "./checked";

export interface PackageOptions {
  /** Exactly this version. */
  version?: string;
  /** Keep the package manager from upgrading it. */
  hold?: boolean;
}

/** Packages by the host's package manager, installed in one go. Only those that kubexm installed are removed again. */
export function packages(names: readonly string[], { version, hold }: PackageOptions = {}): Step[] {
  const all = names.map((name) => `${checkedName(name)}${version === undefined ? "" : `=${checkedName(version)}`}`);
  return names.map((name): Step => ({
    id: `package ${name}`,
    group: "packages",
    want: {
      installed: "yes",
      ...(version !== undefined && { version }),
      ...(hold !== undefined && { hold: hold ? "yes" : "no" }),
    },
    look: sh`look_package ${name}`,
    bulk: { kind: "package", name },
    brought: sh`was_brought ${name}`,
    prior: sh`prior_package ${name}`,
    make: sh`package_is_there ${name} ${version ?? ""} || install_missing ${all}
${hold === undefined ? sh`:` : sh`hold_package ${name} ${hold ? "yes" : "no"}`}`,
    undo: sh`undo_package ${name} ${version === undefined ? [] : ["pinned"]}`,
    timeout: 1800,
  }));
}

/** One package. */
export const pkg = (name: string, options?: PackageOptions): Step[] => packages([name], options);
