import { UsageError } from "../toolchain/errors.js";

const SIGNAL_CODES: Readonly<Record<string, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Errors meant for a person are complete by their message; the stack of anything else is needed to mend it. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const forPeople = /^(User|Usage|Argument|Remote|Config|Pulumi)Error$/.test(error.name);
  return forPeople ? error.message : `internal error: ${error.stack ?? error.message}`;
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
