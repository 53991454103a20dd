import { CHECKS } from "../preflight/checks";
import type { Path } from "./problems";
import type { Finding, Rule } from "./rule";
import type { ClusterSpec } from "./schema";
import { closest } from "./words";

const known: readonly string[] = CHECKS;

function unknownChecks({ ignorePreflight, hosts }: ClusterSpec): Finding[] {
  const lists: { names: readonly string[]; path: Path }[] = [
    { names: ignorePreflight, path: ["ignorePreflight"] },
    ...hosts.map((host, i) => ({ names: host.ignorePreflight, path: ["hosts", i, "ignorePreflight"] })),
  ];
  return lists.flatMap(({ names, path }) =>
    names.flatMap((name, i) => {
      if (known.includes(name)) return [];
      const advice = closest(name, known) ?? `one of ${known.join(", ")}`;
      return [{ path: [...path, i], message: `is not a preflight check; write ${advice}` }];
    }),
  );
}

export const PREFLIGHT_RULES: readonly Rule[] = [{ name: "unknown-check", severity: "error", check: unknownChecks }];
