import { connect as tcpConnect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import PQueue from "p-queue";
import { Client, type ConnectConfig } from "ssh2";
import { RemoteError, UserError, textOf } from "../errors";
import { authFailure, authHandler, authPlan, nothingToTry, type AuthPlan } from "./auth";
import { codeOf, endpoint, failure } from "./failure";
import { hostKeyCheck, type HostKeyCheck } from "./host-key";
import { inTime } from "./in-time";
import { offerHostKeyAlgorithms, ping, reusePackets } from "./internals";
import type { Target } from "./target";

const KEEPALIVE = { everyMs: 15_000, misses: 3 };
const PINGS = { count: 2, patienceMs: 1_000 };
const DIALS_AT_ONCE = 4;
const BACKOFF = { firstMs: 150, maxMs: 2_500 };

/** One logged-in connection. */
export interface Live {
  client: Client;
  sock: Socket | Duplex;
  /** Milliseconds for one round trip; measured when first asked for. */
  roundTrip: () => Promise<number>;
  closed: boolean;
  /** As the host proved it. */
  hostKey: Buffer;
  /** Whether an idle connection lets the process end. */
  hold: (busy: boolean) => void;
  /** Reads from the network and writes to it, for connections that have their own socket. */
  bytes: () => { read: number; written: number };
}

export interface DialCounters {
  dials: number;
  retries: number;
}

/** A stream to the target through its bastion; absent when it is dialled directly. */
export type Forward = (host: string, port: number) => Promise<Duplex>;

/** Worth another try: sshd drops connections at random while too many are not yet logged in (MaxStartups). */
class Dropped extends Error {}

const queues = new Map<string, PQueue>();

function dialQueue(target: Target): PQueue {
  const key = endpoint(target);
  const queue = queues.get(key) ?? new PQueue({ concurrency: DIALS_AT_ONCE });
  queues.set(key, queue);
  return queue;
}

const SOCKET_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is sshd running, and is this the right port?",
  ENOTFOUND: "the name is not known: check the address, or the Host entry in ~/.ssh/config",
  EHOSTUNREACH: "there is no way to it: check the address, the network and the firewall",
  ENETUNREACH: "there is no way to its network: check the address and the routes of this machine",
  ETIMEDOUT: "check the address, the firewall and that the host is up",
};

const SEEN_OPEN = "connected, but the SSH handshake did not finish";
const LOGIN_ADVICE = "look into the host's sshd log; it is not tried again, for repeated failed logins can shut us out";
const DROP_ADVICE =
  "sshd closed the connection before login: too many at once (MaxStartups), or a penalty for this machine after failed logins (PerSourcePenalties in sshd 9.8 and later): wait some minutes, look into the host's sshd log";

function unreachable(target: Target, why: string, advice: string, cause?: unknown): RemoteError {
  const through = target.via ? ` through ${target.via.label}` : "";
  return failure(
    target.label,
    "unreachable",
    `${endpoint(target)} cannot be reached${through}: ${why}`,
    { advice },
    cause,
  );
}

function socketFailure(target: Target, error: unknown, connected: boolean): Error {
  const name = codeOf(error);
  if (name === "EAI_AGAIN" || (connected && ["ECONNRESET", "EPIPE"].includes(name))) return new Dropped(textOf(error));
  return unreachable(
    target,
    textOf(error),
    SOCKET_ERRORS[name] ?? "check the address, the port and the network",
    error,
  );
}

async function openSocket(target: Target, forward: Forward | undefined): Promise<Socket | Duplex> {
  if (!forward) return tcpConnect({ host: target.address, port: target.port, noDelay: true });
  try {
    return await forward(target.address, target.port);
  } catch (error) {
    if (error instanceof RemoteError) throw error;
    throw unreachable(target, textOf(error), "check that the bastion can reach it and allows TCP forwarding", error);
  }
}

const offersCertificates = (check: HostKeyCheck) => check.algorithms.some((name) => name.includes("-cert-"));

function configFor(target: Target, sock: Socket | Duplex, check: HostKeyCheck, auth: ReturnType<typeof authHandler>) {
  const config: ConnectConfig = {
    sock: sock,
    username: target.user,
    readyTimeout: 0, // our own deadline covers TCP, handshake and login together
    keepaliveInterval: 0, // see keepAlive: ssh2's timer would keep an idle process alive
    authHandler: auth.next,
  };
  if (!offersCertificates(check)) config.algorithms = { serverHostKey: [...check.algorithms] as never };
  return config;
}

interface Attempt {
  target: Target;
  plan: AuthPlan;
  forward: Forward | undefined;
  deadline: number;
}

/** Dials once. Rejects with {@link Dropped} where another try may help, with a RemoteError where it cannot. */
async function dialOnce({ target, plan, forward, deadline }: Attempt): Promise<Live> {
  const check = hostKeyCheck(target);
  const auth = authHandler(plan);
  const started = Date.now();
  const opening = openSocket(target, forward);
  const sock = await inTime(opening, Math.max(1, deadline - started), () => {
    // One that comes late is nobody's.
    opening.then((late) => late.destroy()).catch(() => undefined);
    return unreachable(target, timeoutText(false, target), SOCKET_ERRORS["ETIMEDOUT"] ?? "");
  });
  const client = new Client();
  let connected = forward !== undefined;
  let keyProblem: RemoteError | undefined;
  const live = liveOf(client, sock);

  const ready = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(unreachable(target, timeoutText(connected, target), SOCKET_ERRORS["ETIMEDOUT"] ?? "")),
      Math.max(1, deadline - Date.now()),
    );
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(keyProblem ?? error);
    };
    // Stays for good: an error nobody listens to would end the process.
    client.on("error", (error: Error & { level?: string }) => {
      if (error instanceof UserError) return fail(error);
      if (error.level === "agent" || (error.level === "client-authentication" && !auth.state.exhausted)) return;
      if (auth.state.exhausted) fail(authFailure(target, plan, auth.state, error.message));
      else if (/too many authentication failures/i.test(error.message))
        fail(authFailure(target, plan, auth.state, error.message));
      else if (error.level === "client-socket") fail(socketFailure(target, error, connected));
      else if (error.message === "Connection lost before handshake") fail(new Dropped(error.message));
      else fail(unreachable(target, error.message, "the two sides do not agree on SSH; look into the host's sshd log"));
    });
    client.on("close", () => {
      live.closed = true;
      fail(
        auth.state.tried.length > 0
          ? unreachable(target, `it hung up during login (${auth.state.tried.join(", ")})`, LOGIN_ADVICE)
          : new Dropped("the connection was closed during the handshake"),
      );
    });
    client.on("handshake", () => check.proven(live.hostKey));
    client.on("ready", () => {
      clearTimeout(timer);
      resolve();
    });
    sock.once("connect", () => {
      connected = true;
    });
    client.connect({
      ...configFor(target, sock, check, auth),
      hostVerifier: (key: Buffer) => {
        // Keys are exchanged anew on a long connection: what was proven is neither judged nor written down again.
        if (live.hostKey.equals(key)) return true;
        live.hostKey = key;
        keyProblem = check.problem(key);
        return keyProblem === undefined;
      },
    });
    if (offersCertificates(check)) offerHostKeyAlgorithms(client, check.algorithms);
  });
  try {
    await ready;
  } catch (error) {
    sock.destroy();
    throw error;
  }
  reusePackets(client, sock);
  keepAlive(live);
  return live;
}

function timeoutText(connected: boolean, target: Target): string {
  const seconds = `${target.connectTimeoutMs / 1000} s`;
  return connected ? `${SEEN_OPEN} within ${seconds}` : `no answer within ${seconds}`;
}

function liveOf(client: Client, sock: Socket | Duplex): Live {
  const own = "bytesWritten" in sock ? sock : undefined;
  let measured: Promise<number> | undefined;
  return {
    client,
    sock,
    roundTrip: () => (measured ??= bestOfPings(client)),
    closed: false,
    hostKey: Buffer.alloc(0),
    hold: (busy) => (busy ? own?.ref() : own?.unref()),
    bytes: () => ({ read: own?.bytesRead ?? 0, written: own?.bytesWritten ?? 0 }),
  };
}

/**
 * The shorter of two: a busy process or host makes each of them longer, the opening of the socket most of all, which the loading of
 * modules falls into. What does not answer is far.
 */
async function bestOfPings(client: Client): Promise<number> {
  let best = PINGS.patienceMs;
  for (let i = 0; i < PINGS.count; i++) {
    const asked = performance.now();
    const answer = new Promise<void>((resolve) => ping(client, resolve));
    const answered = await inTime(answer, PINGS.patienceMs, () => new Error("late")).then(
      () => true,
      () => false,
    );
    if (!answered) break;
    best = Math.min(best, performance.now() - asked);
  }
  return best;
}

/** Ends a connection that is silent for some 45 s. Whatever arrives counts as a sign of life, so a full link is not cut. */
export function keepAlive(live: Live, pace = KEEPALIVE): void {
  const { sock } = live;
  let misses = 0;
  sock.on("data", () => {
    misses = 0;
  });
  const timer = setInterval(() => {
    if (++misses <= pace.misses) return ping(live.client, () => (misses = 0));
    sock.destroy();
  }, pace.everyMs).unref();
  live.client.once("close", () => clearInterval(timer));
}

/** Logs in: at most four dials at once to one address, and new tries spread out when sshd drops us unheard. */
export async function dial(target: Target, forward: Forward | undefined, counters: DialCounters): Promise<Live> {
  const plan = await authPlan(target);
  if (plan.attempts.length === 0) throw nothingToTry(target, plan);
  const deadline = Date.now() + target.connectTimeoutMs;
  for (let tries = 0; ; tries++) {
    try {
      counters.dials++;
      return await dialInTurn({ target, plan, forward, deadline });
    } catch (error) {
      if (!(error instanceof Dropped)) throw error;
      const pause = Math.min(BACKOFF.maxMs, BACKOFF.firstMs * 2 ** tries) * (0.5 + Math.random());
      if (Date.now() + pause >= deadline)
        throw unreachable(target, `${error.message}, ${tries + 1} times`, DROP_ADVICE, error);
      counters.retries++;
      await sleep(pause);
    }
  }
}

async function dialInTurn(attempt: Attempt): Promise<Live> {
  return dialQueue(attempt.target).add<Live>(() => dialOnce(attempt));
}
