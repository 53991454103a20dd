import type { Command } from "../shell";
import { sh } from "../shell";
import type { Step } from "../step";

export interface CommandOptions {
  run: Command;
  /** Exits 0 when there is nothing to be done; changes nothing. */
  doneWhen: Command;
  /** Takes it back; without it the effect stays after destroy. */
  undo?: Command;
  timeout?: number;
}

/** Anything no other step does. What it means to be done has to be said. */
export const command = (title: string, { run, doneWhen, undo, timeout }: CommandOptions): Step => ({
  id: `command ${title}`,
  want: { done: "yes" },
  look: sh`if (
${doneWhen}
) >/dev/null 2>&1; then kv done yes; else kv done no; fi`,
  make: sh`reload_units
${run}`,
  undo: sh`[ "$(was done)" = yes ] || {
${undo ?? sh`:`}
}`,
  ...(timeout !== undefined && { timeout }),
});
