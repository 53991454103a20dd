import { compare, describeDifferences, type Snapshot } from "../../lab/snapshot";

/**
 * Lab hosts share their machine's kernel: kubelets of other labs, and labs that come and go, set these for all of them. That
 * a node gives them back is a unit test.
 */
const MACHINE_WIDE =
  /^(fs\.inotify|user\.max_inotify|kernel\.panic|kernel\.keys\.|vm\.overcommit_memory|vm\.panic_on_oom)/;

/** What became otherwise on a host between two snapshots, and is of that host alone. */
export const ownChanges = (before: Snapshot, now: Snapshot) =>
  compare(before, now).filter(({ kind, name }) => kind !== "sysctl" || !MACHINE_WIDE.test(name));

/** The same in words; empty when nothing did. */
export const changesOn = (before: Snapshot, now: Snapshot): string => describeDifferences(ownChanges(before, now));
