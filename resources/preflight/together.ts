import { fail, pass, tolerate, warn, type Row, type Verdict } from "./checks";
import type { Check } from "./names";
import type { Answer } from "./seen";

/** What is kept of one host's checks: enough to judge it beside the others. */
export interface HostResult {
  readonly host: string;
  /** Whether it could be looked at. */
  readonly seen: boolean;
  /** When it was looked at, in seconds. */
  readonly at: number;
  /** How far its clock was before ours, least and most. */
  readonly ahead: readonly [number, number];
  readonly hostname: string;
  readonly uuid: string;
  readonly macs: readonly string[];
  readonly zone: string;
  /** system.timezone says what it becomes. */
  readonly zoneGiven: boolean;
  readonly firewall: readonly string[];
  /** What it could not reach. */
  readonly unreached: readonly Unreached[];
  readonly ignore: readonly string[];
  /** How many checks passed. */
  readonly passed: number;
  /** Warnings and failures. */
  readonly rows: readonly Row[];
}

export interface Unreached {
  readonly host: string;
  readonly port: number;
  readonly how: Answer | "no-answer";
  /** Something was expected to listen there. */
  readonly answers: boolean;
}

/** Seconds. Leases, tokens and certificates go wrong from about there on. */
const MOST_SKEW = 5;
/** Seconds. Those looked at longer ago were compared when they came; chrony holds them since. */
const TOGETHER = 3600;

const middle = ([least, most]: readonly [number, number]) => (least + most) / 2;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] ?? 0) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

type Judged = (host: HostResult) => Verdict | undefined;

/** The least that a clock can be apart from the others, whatever part of the difference is the way there. */
function clock(all: readonly HostResult[]): Judged {
  const newest = Math.max(...all.map(({ at }) => at));
  const now = all.filter(({ at }) => newest - at <= TOGETHER);
  const usual = median(now.map(({ ahead }) => middle(ahead)));
  return (host) => {
    if (!now.includes(host)) return undefined;
    const [least, most] = host.ahead;
    const apart = Math.max(least - usual, usual - most, 0);
    const shown = middle(host.ahead) - usual;
    if (apart <= MOST_SKEW) return pass(`${Math.abs(shown).toFixed(1)} s from the others`);
    return fail(
      `${Math.abs(shown).toFixed(1)} s ${shown > 0 ? "before" : "behind"} the median of the hosts`,
      `set the clock (date -s, chronyc makestep); more than ${MOST_SKEW} s apart, certificates and leases go wrong`,
    );
  };
}

/** Hosts by what they say of themselves. */
function byWord(all: readonly HostResult[], words: (host: HostResult) => readonly string[]) {
  const holders = new Map<string, string[]>();
  for (const host of all) for (const word of words(host)) holders.set(word, [...(holders.get(word) ?? []), host.host]);
  return (host: HostResult) =>
    words(host).flatMap((word) => {
      const others = (holders.get(word) ?? []).filter((name) => name !== host.host);
      return others.length === 0 ? [] : [{ word, others }];
    });
}

const MOST_NAMED = 3;
const named = (names: readonly string[]) =>
  names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "");

const shared = (all: readonly HostResult[], words: (host: HostResult) => readonly string[], fix: string): Judged => {
  const twins = byWord(all, words);
  return (host) => {
    const own = words(host);
    if (own.length === 0) return undefined;
    const [twin] = twins(host);
    return twin === undefined ? pass(own.join(", ")) : fail(`${twin.word} is that of ${named(twin.others)} too`, fix);
  };
};

function hostname(all: readonly HostResult[]): Judged {
  const names = new Set(all.map(({ host }) => host));
  const twins = byWord(all, (host) => [host.hostname]);
  return (host) => {
    if (host.hostname !== host.host && names.has(host.hostname))
      return fail(
        `it calls itself ${host.hostname}, which is another host of cluster.yaml`,
        `see that the addresses of ${host.host} and ${host.hostname} are the right way round; hostnamectl set-hostname ${host.host}`,
      );
    const [twin] = twins(host);
    if (twin !== undefined && host.hostname !== "")
      return warn(
        `${named(twin.others)} ${twin.others.length === 1 ? "calls itself" : "call themselves"} ${host.hostname} too`,
        "nothing, if they are different machines: up gives each the name it has in cluster.yaml",
      );
    return undefined;
  };
}

function zones(all: readonly HostResult[]): Judged {
  const counted = byWord(all, ({ zone }) => [zone]);
  const several = new Set(all.map(({ zone }) => zone)).size > 1;
  const alike = (host: HostResult) => counted(host)[0]?.others.length ?? 0;
  const most = Math.max(...all.map(alike));
  return (host) =>
    several && !host.zoneGiven && (alike(host) < most || most === 0)
      ? warn(
          `${host.zone === "" ? "none" : host.zone}, unlike other hosts`,
          "write system.timezone, so that logs of all hosts can be read beside each other",
        )
      : undefined;
}

const HOW: Readonly<Record<Unreached["how"], string>> = {
  open: "reached",
  closed: "nothing listens",
  "unknown-name": "its name is not known",
  "refused-by-firewall": "turned away",
  "no-answer": "no answer within 2 seconds",
};

/** A port on which nothing listens yet still answers that; only a firewall on the way, or a missing way, says nothing. */
function reachability(all: readonly HostResult[]): Judged {
  const guarded = new Set(all.filter(({ firewall }) => firewall.length > 0).map(({ host }) => host));
  return ({ unreached }) => {
    if (unreached.length === 0) return pass("all");
    const texts = unreached.map(({ host, port, how }) => `${host}:${port} (${HOW[how]})`);
    const found = `not reached: ${named(texts)}`;
    if (unreached.every(({ host, answers }) => guarded.has(host) && !answers))
      return warn(found, "nothing, if it is the host's own firewall: up opens what the roles need");
    return fail(found, "open the ports in the network between the hosts (security groups, routers), both ways");
  };
}

const UUID_FIX =
  "give each machine its own (a copied virtual machine keeps its original's): it is what tells nodes apart";
const MAC_FIX = "give each network card its own: packets of one host reach the other";

/** What only shows when all hosts are seen beside each other. */
export function judgeTogether(hosts: readonly HostResult[]): Row[] {
  const all = hosts.filter(({ seen }) => seen);
  if (all.length === 0) return [];
  const judges: readonly (readonly [Check, Judged])[] = [
    ["hostname", hostname(all)],
    ["product-uuid", shared(all, ({ uuid }) => (uuid === "" ? [] : [uuid]), UUID_FIX)],
    ["mac", shared(all, ({ macs }) => macs, MAC_FIX)],
    ["clock", clock(all)],
    ["timezone", zones(all)],
    ["reachability", reachability(all)],
  ];
  return all.flatMap((host) =>
    judges.flatMap(([check, judge]) => {
      const verdict = judge(host);
      return verdict === undefined ? [] : [tolerate({ host: host.host, check, ...verdict }, host.ignore)];
    }),
  );
}
