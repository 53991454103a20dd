import { ArgumentError } from "../errors";
import { sh } from "../shell";
import type { Step } from "../step";

/** The name the kernel goes by now; what it is after a boot stands in /etc/hostname. */
export const kernelHostname = (name: string): Step => ({
  id: "hostname",
  want: { hostname: name },
  look: sh`read -r hostname </proc/sys/kernel/hostname && kv hostname "$hostname"`,
  make: sh`printf '%s\n' ${name} >/proc/sys/kernel/hostname`,
  undo: sh`was hostname >/proc/sys/kernel/hostname`,
  keepIfChanged: ["hostname"],
});

export type SelinuxMode = "permissive" | "disabled" | "enforcing";

/** The mode of SELinux, now and after every boot. A host without SELinux has every mode. */
export const selinux = (mode: SelinuxMode): Step => ({
  id: "selinux",
  want: { mode, boot: mode },
  look: sh`look_selinux ${mode}`,
  save: sh`selinux_line >line`,
  make: sh`set_selinux ${mode}`,
  undo: sh`undo_selinux`,
});

/** Every service may open at least this many files, if it asks for them; what it gets unasked stays. */
export function openFiles(least: number): Step {
  if (!Number.isInteger(least) || least < 1024)
    throw new ArgumentError(String(least), "expected a number from 1024 on");
  return {
    id: "limit nofile",
    want: { nofile: "enough" },
    look: sh`look_nofile ${least}`,
    make: sh`set_nofile ${least}`,
    undo: sh`undo_nofile`,
  };
}
