import { DISK_CODES, UsageError, codeOf as codeOfSystem } from "../toolchain/errors.js";

const SIGNAL_CODES: Readonly<Record<string, number>> = { SIGINT: 130, SIGTERM: 143 };

/** A folder that may not be written, a full disk: faults of this machine, which the system's own words name with the path. */
const isOfDisk = (error: Error) => [...DISK_CODES, "ENOTDIR"].includes(codeOfSystem(error) ?? "");

/** Errors meant for a person are complete by their message; the stack of anything else is needed to mend it. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (isOfDisk(error)) return error.message;
  const forPeople = /^(User|Usage|Argument|Remote|Config|Pulumi)Error$/.test(error.name);
  return forPeople ? error.message : `internal error: ${error.stack ?? error.message}`;
}

/** Whoever reads may go (`| head`), or have a full disk: that is no reason to break off in the middle of a cluster. */
export function outliveReaders(streams: readonly NodeJS.EventEmitter[] = [process.stdout, process.stderr]): void {
  for (const stream of streams) stream.on("error", () => undefined);
}

/** Runs a command to its exit code; whatever it throws is told. */
export async function codeOf(command: () => Promise<number>): Promise<number> {
  try {
    return await command();
  } catch (error) {
    const signal = error instanceof Error ? SIGNAL_CODES[error.message] : undefined;
    console.error(signal === undefined ? describe(error) : "stopped");
    return signal ?? (error instanceof UsageError ? error.code : 1);
  }
}

/** Set, not called at once: what is still to be written must get there. A handle left open must not keep us, though. */
export function exitWith(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), 200).unref();
}
