/** An error meant for a person: what happened and what to do. Callers print only its message. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}

/** A command line that cannot be understood: one line, and exit code 2 unless that means something else for the verb. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  constructor(
    message: string,
    readonly code = 2,
  ) {
    super(message);
  }
}

/** What `parse` makes of a command line; `refuse` says in the command's words why it is not understood. */
export function understood<T>(parse: () => T, refuse: (reason: string) => UsageError): T {
  try {
    return parse();
  } catch (error) {
    if (codeOf(error)?.startsWith("ERR_PARSE_ARGS")) throw refuse(messageOf(error).split(/\.\s|\n/)[0] ?? "");
    throw error;
  }
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  // What a failed connection to a name with several addresses throws; its own message is empty.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}

/** The system's error code (ENOENT …), if that is what was thrown. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** A full disk, or one that may not be written. */
export const DISK_CODES: readonly string[] = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM"];
