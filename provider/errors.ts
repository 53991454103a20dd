/** An error meant for a person: what happened, where, and what to do next. Never carries a secret. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}

/** An argument that cannot be right, found while steps are built from it: before any connection. */
export class ArgumentError extends UserError {
  override readonly name = "ArgumentError";
  constructor(
    readonly value: string,
    expected: string,
  ) {
    super(`${JSON.stringify(value)}: ${expected}`);
  }
}

/** Why a remote command gave no good result. */
export type RemoteReason =
  | "exit"
  | "signal"
  | "timeout"
  | "disconnected"
  | "unreachable"
  | "auth"
  | "hostkey"
  | "sudo"
  | "channel"
  | "cancelled";

export interface RemoteFailure {
  host: string;
  reason: RemoteReason;
  /** What was tried, masked. */
  command?: string;
  code?: number;
  signal?: string;
  stderr?: string;
  /** What the reader should do. */
  advice?: string;
  component?: string;
  step?: string;
}

/** A failure on or on the way to a host; its message is complete, line by line. */
export class RemoteError extends UserError {
  override readonly name = "RemoteError";
  constructor(
    readonly summary: string,
    readonly failure: RemoteFailure,
    options?: ErrorOptions,
  ) {
    super(describe(summary, failure), options);
  }
}

const silent: readonly RemoteReason[] = ["unreachable", "timeout", "disconnected"];

/** The host gave no answer at all, as one that is gone gives none. */
export const isUnreachable = (error: unknown): error is RemoteError =>
  error instanceof RemoteError && silent.includes(error.failure.reason);

/** Twenty lines of a journal, and what was said before them. */
export const STDERR_LINES = 24;

function describe(summary: string, f: RemoteFailure): string {
  const where = [f.host, f.component, f.step].filter(Boolean).join(" › ");
  const tail = f.stderr?.trimEnd().split("\n").slice(-STDERR_LINES) ?? [];
  return [
    `${where}: ${summary}`,
    f.command && `  command: ${f.command}`,
    f.code !== undefined && `  exit code: ${f.code}`,
    f.signal && `  signal: ${f.signal}`,
    tail.some((line) => line !== "") && `  stderr:\n${tail.map((line) => `    ${line}`).join("\n")}`,
    f.advice && `  what to do: ${f.advice}`,
  ]
    .filter((line): line is string => typeof line === "string")
    .join("\n");
}

const login: readonly RemoteReason[] = ["auth", "hostkey", "sudo"];

/** The host answers, and does not let us in. */
export const isOfLogin = (error: unknown): error is RemoteError =>
  error instanceof RemoteError && login.includes(error.failure.reason);

/** The message of whatever was thrown. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
