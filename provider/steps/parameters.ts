import { sh } from "../shell";
import type { Step } from "../step";
import { sysctl } from "./kernel";

/**
 * Kernel parameters on a host that may be a container. A container leaves to its machine what holds for all of it, and
 * those of the network that it does not have or may not write.
 */
export function parameters(
  path: string,
  values: Readonly<Record<string, string | number>>,
  { container }: { container: boolean },
): Step[] {
  if (!container) return sysctl(path, values);
  return sysctl(path, values).flatMap((step) => {
    if (step.bulk?.kind !== "sysctl") return [step];
    const { name } = step.bulk;
    if (!name.startsWith("net.")) return [];
    const { id, want, make, undo, keepIfChanged = [] } = step;
    return [{ id, want, look: sh`look_parameter ${name} ${want["value"] ?? ""}`, make, undo, keepIfChanged }];
  });
}
