import { RemoteError } from "../../provider/errors";
import { learnFacts } from "../../provider/facts";
import type { Remote } from "../../provider/ssh/remote";
import type { Asked } from "./asked";
import type { Row } from "./checks";
import { judgeHost } from "./judge";
import { lookText } from "./look";
import { parseSeen, type Seen } from "./seen";
import type { HostResult, Unreached } from "./together";

/** Seconds; the script bounds itself to a few. */
const LONGEST = 60;

/** Asks a host everything with one exec. */
export async function lookAt(remote: Remote, asked: Asked): Promise<Seen> {
  const now = () => Date.now() / 1000;
  const sent = now();
  let came = 0;
  const { stdout } = await remote.run(lookText(asked), {
    title: "preflight",
    timeout: LONGEST,
    onLine: (line) => {
      if (came === 0 && line.startsWith("@time=")) came = now();
    },
  });
  learnFacts(remote, stdout);
  return parseSeen(stdout, { sent, came: came === 0 ? now() : came });
}

export function unreachedOf(
  { reached, canProbe }: Pick<Seen, "reached" | "canProbe">,
  { reach }: Pick<Asked, "reach">,
): Unreached[] {
  if (!canProbe) return [];
  return reach.flatMap(({ host, ports, answers }) =>
    ports.flatMap((port) => {
      const how = reached.get(`${host}:${port}`) ?? "no-answer";
      const fine = how === "open" || (how === "closed" && !answers);
      return fine ? [] : [{ host, port, how, answers }];
    }),
  );
}

const round = (value: number) => Math.round(value * 1000) / 1000;

/** Rows of one host, and what is needed of it to judge all together. */
export interface Examined {
  readonly rows: readonly Row[];
  readonly result: HostResult;
}

const unseen = (host: string, at: number, row: Row, ignore: readonly string[]): HostResult => ({
  ...{ host, at, ahead: [0, 0], hostname: "", uuid: "", macs: [], zone: "", zoneGiven: true, firewall: [] },
  ...{ seen: false, unreached: [], ignore, passed: 0, rows: [row] },
});

/** Checks a host by itself. A host that cannot be looked at is a row like any other, so that all are told at once. */
export async function examine(host: string, asked: Asked, connect: () => Promise<Remote>): Promise<Examined> {
  const at = Math.round(Date.now() / 1000);
  try {
    const seen = await lookAt(await connect(), asked);
    const rows: Row[] = [{ host, check: "connect", result: "pass", found: "logged in, and root" }];
    rows.push(...judgeHost(host, seen, asked));
    const result: HostResult = {
      host,
      at,
      seen: true,
      ahead: [round(seen.ahead[0]), round(seen.ahead[1])],
      hostname: seen.hostname,
      uuid: seen.uuid,
      macs: seen.macs,
      zone: seen.zone,
      zoneGiven: asked.zone !== undefined,
      firewall: seen.firewall,
      unreached: unreachedOf(seen, asked),
      ignore: asked.ignore,
      passed: rows.filter(({ result }) => result === "pass").length,
      rows: rows.filter(({ result }) => result !== "pass"),
    };
    return { rows, result };
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    const { reason, stderr = "", advice = "" } = error.failure;
    const said = reason === "exit" ? stderr.trim().split("\n").at(-1) : undefined;
    const found = said === undefined || said === "" ? error.summary : `${error.summary}: ${said}`;
    const row: Row = { host, check: "connect", result: "fail", found, fix: advice };
    return { rows: [row], result: unseen(host, at, row, asked.ignore) };
  }
}
