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
