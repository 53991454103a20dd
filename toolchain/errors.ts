/** An error meant for a person: what happened and what to do. Callers print only its message. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's error code (ENOENT …), if that is what was thrown. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
