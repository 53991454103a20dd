/** An error meant for a person: what happened and what to do. Callers print only its message. */
export class UserError extends Error {
  override readonly name: string = "UserError";
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
