import { sh } from "../shell";
import type { Step } from "../step";
import { checkedName, checkedPath } from "./checked";
import { file } from "./file";

/** Kernel parameters, now and after every boot. */
export function sysctl(path: string, values: Readonly<Record<string, string | number>>): Step[] {
  checkedPath(path);
  const rows = Object.entries(values);
  return [
    file(path, `# Managed by kubexm\n${rows.map(([name, value]) => `${name} = ${value}\n`).join("")}`),
    ...rows.map(([name, value]): Step => ({
      id: `sysctl ${checkedName(name)}`,
      want: { value: String(value) },
      look: sh`look_sysctl ${name}`,
      bulk: { kind: "sysctl", name },
      make: sh`set_sysctl ${name} ${String(value)}`,
      undo: sh`undo_sysctl ${name}`,
      keepIfChanged: ["value"],
    })),
  ];
}

/** Kernel modules, now and after every boot. */
export function modules(path: string, names: readonly string[]): Step[] {
  return [
    file(path, `# Managed by kubexm\n${names.map((name) => `${name}\n`).join("")}`),
    ...names.map((name): Step => ({
      id: `module ${checkedName(name)}`,
      want: { loaded: "yes" },
      look: sh`look_module ${name}`,
      make: sh`modprobe -- ${name}`,
      undo: sh`undo_module ${name}`,
    })),
  ];
}
