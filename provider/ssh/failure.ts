import { RemoteError, type RemoteFailure, type RemoteReason } from "../errors";
import type { Target } from "./target";

export function failure(
  host: string,
  reason: RemoteReason,
  summary: string,
  more: Omit<RemoteFailure, "host" | "reason"> = {},
  cause?: unknown,
): RemoteError {
  return new RemoteError(summary, { host, reason, ...more }, cause === undefined ? undefined : { cause });
}

export function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}

export function endpoint(target: Target): string {
  const address = target.address.includes(":") ? `[${target.address}]` : target.address;
  return `${address}:${target.port}`;
}

/** What the host printed, without the secrets we sent it. */
export function scrub(text: string, target: Target): string {
  return [target.password, target.sudoPassword, target.passphrase]
    .filter((secret): secret is string => secret !== undefined && secret.length > 3)
    .reduce((out, secret) => out.replaceAll(secret, "***"), text);
}
