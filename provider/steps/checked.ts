import { ArgumentError } from "../errors";

function demand(value: string, pattern: RegExp, expected: string): string {
  if (!pattern.test(value)) throw new ArgumentError(value, `expected ${expected}`);
  return value;
}

/** Absolute, without `..`, `.` or empty parts, not the root itself. */
export const checkedPath = (path: string) =>
  demand(path, /^(?!.*\/\.{1,2}(?:\/|$))(?:\/[^/\0\n]+)+$/, "an absolute path without . and ..");

export const checkedMode = (mode: string) => demand(mode, /^0?[0-7]{3,4}$/, "a mode like 0644");

export function checkedOwner(owner: string): [user: string, group: string] {
  const [user = "", group = ""] = demand(
    owner,
    /^[a-z_][\w.-]*\$?:[a-z_][\w.-]*\$?$/i,
    "an owner like root:root",
  ).split(":");
  return [user, group];
}

export const checkedWord = (word: string) => demand(word, /^[^\0-\x1f\x7f]+$/, "a text without control characters");

export const checkedName = (name: string) => demand(name, /^[A-Za-z0-9][A-Za-z0-9._+:@~-]*$/, "a plain name");

export const checkedSha256 = (sum: string) => demand(sum, /^[0-9a-f]{64}$/, "a sha256 of 64 hexadecimal digits");
