import { appendFileSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** One line of the run log: what was done to which host, never with a secret in it. */
export interface LogEntry {
  readonly host: string;
  readonly component: string;
  readonly step: string;
  readonly changed: boolean;
  readonly ms: number;
  readonly bytes?: number;
  readonly failed?: string;
  /** Why nothing was to be done. */
  readonly reason?: string;
}

export type RunLog = (entry: LogEntry) => void;

/** Each held open to the end, for all that a process does. */
const logs = new Map<string, number>();

function opened(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  const log = openSync(file, "a", 0o600);
  logs.set(file, log);
  return log;
}

/** JSON lines in the file that the kubexm command names; a program run by plain `pulumi` has none unless it sets it. */
export function runLog(file = process.env["KUBEXM_RUN_LOG"]): RunLog {
  if (file === undefined || file === "") return () => undefined;
  return (entry) => {
    const line = JSON.stringify({ time: new Date().toISOString(), ...entry });
    appendFileSync(logs.get(file) ?? opened(file), `${line}\n`);
  };
}
