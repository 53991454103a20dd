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
  const steps = sysctl(path, values).map(withRedirects);
  if (!container) return steps;
  return steps.flatMap((step) => {
    if (step.bulk?.kind !== "sysctl") return [step];
    const { name } = step.bulk;
    if (!name.startsWith("net.")) return [];
    const bulk = { kind: "parameter", name: `${name} ${step.want["value"] ?? ""}` } as const;
    return [{ ...step, look: sh`look_parameter ${name} ${step.want["value"] ?? ""}`, bulk }];
  });
}

/** With this parameter the kernel changes another one by itself, both ways. */
function withRedirects(step: Step): Step {
  if (step.id !== "sysctl net.ipv4.ip_forward") return step;
  const redirects = "/proc/sys/net/ipv4/conf/all/accept_redirects";
  return {
    ...step,
    save: sh`if [ -e ${redirects} ]; then cat ${redirects} >redirects; fi`,
    undo: sh`${step.undo}
if [ -s redirects ]; then cat redirects >${redirects}; fi`,
  };
}
