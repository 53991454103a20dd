import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

const CLOUD = "https://api.pulumi.com";

/** Where `pulumi login` has led; undefined: nowhere, or it cannot be told. */
function loggedIn(home: string): string | undefined {
  try {
    const { current } = JSON.parse(readFileSync(join(home, "credentials.json"), "utf8")) as { current?: unknown };
    return typeof current === "string" && current !== "" ? current : undefined;
  } catch {
    return undefined;
  }
}

/** The backend that plain Pulumi would take for this user, where none is named for kubexm. */
export function otherBackend(user: Env): string | undefined {
  if (user["PULUMI_BACKEND_URL"]) return undefined;
  const current = loggedIn(user["PULUMI_HOME"] ?? join(homedir(), ".pulumi"));
  return current ?? (user["PULUMI_ACCESS_TOKEN"] ? (user["PULUMI_API"] ?? CLOUD) : undefined);
}

/** A login for other projects must not take a cluster's state along; who means it to has to hear how. */
export function loginAdvice(state: string, user: Env = process.env): string | undefined {
  const other = otherBackend(user);
  if (other === undefined) return undefined;
  return `your Pulumi login (${other}) is not used, the state is in ${state}: set PULUMI_BACKEND_URL=${other} to keep it there`;
}
