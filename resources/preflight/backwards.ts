import { RemoteError } from "../../provider/errors";
import type { Remote } from "../../provider/ssh/remote";
import type { Reach } from "./asked";
import { unreachedOf } from "./host";
import { reachText } from "./look";
import { parseReached } from "./seen";
import type { HostResult, Unreached } from "./together";

/** Seconds; the script bounds itself to a few. */
const LONGEST = 60;

/** Tries the way from one host, a master, to all the others: they try the way to it themselves. */
export async function tryBackwards(connect: () => Promise<Remote>, reach: readonly Reach[]): Promise<Unreached[]> {
  if (reach.length === 0) return [];
  try {
    const { stdout } = await (await connect()).run(reachText(reach), { title: "preflight", timeout: LONGEST });
    return unreachedOf(parseReached(stdout), { reach: [...reach] });
  } catch (error) {
    // That it cannot be looked at is told by its own row already.
    if (error instanceof RemoteError) return [];
    throw error;
  }
}

/** With what the first master could not reach. */
export const withBackwards = (
  results: readonly HostResult[],
  from: string,
  unreached: readonly Unreached[],
): HostResult[] =>
  results.map((result) =>
    result.host === from ? { ...result, unreached: [...result.unreached, ...unreached] } : result,
  );
