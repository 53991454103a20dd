import { createHash } from "node:crypto";
import { sh } from "../shell";
import { keyOf, type Step } from "../step";
import { checkedName } from "./checked";

export interface UnitOptions {
  /** Starts with the machine; `masked`: cannot be started at all. */
  enabled?: boolean | "masked";
  running?: boolean;
  /** Seconds that it must stay up once it was started here: some programs look around for a while before they give up. */
  steady?: number;
  /** When one of these steps changes what it makes, the unit is started anew. */
  restartOn?: readonly Step[];
  /** The same, but it is told to read its configuration again. */
  reloadOn?: readonly Step[];
}

const yes = (value: boolean | undefined) => (value === undefined ? "any" : value ? "yes" : "no");

/**
 * A systemd unit. The configuration it was last started with is noted in the ledger, so that a run that was
 * killed between the change of a file and the restart is made good by the next one.
 */
export function unit(name: string, { enabled, running, steady = 0, restartOn, reloadOn }: UnitOptions): Step {
  checkedName(name);
  const watched = restartOn ?? reloadOn;
  const applied = watched
    ? createHash("sha256")
        .update(JSON.stringify(watched.map((step) => [step.id, step.want])))
        .digest("hex")
        .slice(0, 16)
    : undefined;
  const state = enabled === "masked" ? "masked" : yes(enabled);
  const runs = enabled === "masked" ? "no" : yes(running);
  return {
    id: `unit ${name}`,
    want: {
      ...(state !== "any" && { enabled: state }),
      ...(runs !== "any" && { running: runs }),
      ...(applied !== undefined && { applied }),
    },
    ...(watched && { follows: watched.map((step) => step.id) }),
    look: sh`look_unit ${name}`,
    bulk: { kind: "unit", name },
    make: sh`set_unit ${name} ${state} ${runs} ${reloadOn ? "reload" : "restart"} ${steady} ${applied ?? "-"} ${(watched ?? []).map(({ id }) => keyOf(id))}`,
    undo: sh`undo_unit ${name}`,
  };
}
