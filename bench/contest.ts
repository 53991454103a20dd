import type { Lab } from "../lab/hosts.js";
import { onEach } from "./hosts.js";

/** sshd and journald finish what a run left them to do. */
export const SETTLE_MS = 700;

/** Rotated, so that no tool is always the one before or after another. */
export const turned = <T>(all: readonly T[], by: number): T[] => [
  ...all.slice(by % all.length),
  ...all.slice(0, by % all.length),
];

/** A tool that leaves hosts other than wanted is a mistake of the bench, not a fast tool. */
export async function mustHold(
  lab: Pick<Lab, "hosts">,
  check: string | ((host: string) => string),
  name: string,
): Promise<void> {
  await onEach(lab, check).catch((error: unknown) => {
    throw new Error(`after ${name} the hosts are not as they should be`, { cause: error });
  });
}
