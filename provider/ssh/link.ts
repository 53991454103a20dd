import { EventEmitter, once } from "node:events";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import PQueue from "p-queue";
import type { Client, ClientChannel } from "ssh2";
import { RemoteError, textOf } from "../errors";
import { dial, type Live } from "./dial";
import { endpoint, failure } from "./failure";
import { hostKeyCheck } from "./host-key";
import type { Elevation } from "./sudo";
import { targetKey, type Target } from "./target";

/** Commands and transfers have their own lanes, so that a long upload never keeps commands waiting; 8 sessions at most. */
const SESSIONS = { commands: 4, transfers: 4 };
export type Lane = keyof typeof SESSIONS;

const IDLE_MS = 10_000;
/** A refused login or host key is not asked for again at once by every resource of the same host. */
const REFUSAL_MS = 30_000;
/** How long a session may be refused while we hold none ourselves. */
const REFUSED_MS = 15_000;
const SLOT_POLL_MS = 500;
const OPEN_FAILED = 2;
const RESOURCE_SHORTAGE = 4;

/** The shared way to one user on one host: at most one connection, however many use it. */
export interface Link {
  readonly target: Target;
  readonly via: Link | undefined;
  readonly lanes: Readonly<Record<Lane, PQueue>>;
  live?: Promise<Live> | undefined;
  refused?: { error: RemoteError; until: number } | undefined;
  /** How to become root there, by the password that was found to work (or none). */
  readonly elevations: Map<string, Promise<Elevation>>;
  open: number;
  users: number;
  readonly slots: EventEmitter;
  idle?: NodeJS.Timeout | undefined;
}

const links = new Map<string, Link>();

export interface Counters {
  /** TCP or forwarded connections begun, retries among them. */
  dials: number;
  retries: number;
  /** Connections that logged in. */
  connections: number;
  /** Sessions (exec channels) opened. */
  sessions: number;
  bytesRead: number;
  bytesWritten: number;
}

const counters: Counters = { dials: 0, retries: 0, connections: 0, sessions: 0, bytesRead: 0, bytesWritten: 0 };
const connected = new Set<Live>();

export function countConnections(): Counters & { open: number } {
  const now = [...connected].map((live) => live.bytes());
  return {
    ...counters,
    open: connected.size,
    bytesRead: counters.bytesRead + now.reduce((sum, bytes) => sum + bytes.read, 0),
    bytesWritten: counters.bytesWritten + now.reduce((sum, bytes) => sum + bytes.written, 0),
  };
}

const same = (a: Target, b: Target) => JSON.stringify(a) === JSON.stringify(b);

export function linkTo(target: Target): Link {
  const key = targetKey(target);
  const found = links.get(key);
  if (found && (found.live !== undefined || found.users > 0 || same(found.target, target))) return found;
  const lane = (concurrency: number) => new PQueue({ concurrency });
  const link: Link = {
    target,
    via: target.via && linkTo(target.via),
    lanes: { commands: lane(SESSIONS.commands), transfers: lane(SESSIONS.transfers) },
    elevations: new Map(),
    open: 0,
    users: 0,
    slots: new EventEmitter().setMaxListeners(0),
  };
  links.set(key, link);
  return link;
}

/** Keeps the connection while somebody needs it; afterwards it may idle for a while, but not keep the process alive. */
function hold(link: Link, by: 1 | -1): void {
  link.users += by;
  if (link.via) hold(link.via, by);
  clearTimeout(link.idle);
  void link.live?.then((live) => live.hold(link.users > 0)).catch(() => undefined);
  if (link.users === 0) link.idle = setTimeout(() => void close(link), IDLE_MS).unref();
}

export async function close(link: Link): Promise<void> {
  const pending = link.live;
  link.live = undefined;
  clearTimeout(link.idle);
  const live = await pending?.catch(() => undefined);
  if (!live || live.closed) return;
  const gone = once(live.client, "close");
  live.hold(true);
  live.client.end();
  const cut = setTimeout(() => live.client.destroy(), 2_000);
  await gone;
  clearTimeout(cut);
}

export async function closeAll(): Promise<void> {
  const all = [...links.values()];
  links.clear();
  // The outer connections carry the inner ones, so those behind bastions go first.
  await Promise.all(all.filter((link) => link.via).map(close));
  await Promise.all(all.filter((link) => !link.via).map(close));
}

function forget(link: Link, live: Live): void {
  void link.live?.then((current) => {
    if (current === live) link.live = undefined;
  });
}

async function dialLink(link: Link): Promise<Live> {
  const { via } = link;
  const live = await dial(link.target, via && ((host, port) => forward(via, host, port)), counters);
  counters.connections++;
  connected.add(live);
  live.hold(link.users > 0);
  live.client.once("close", () => {
    const { read, written } = live.bytes();
    counters.bytesRead += read;
    counters.bytesWritten += written;
    connected.delete(live);
    forget(link, live);
  });
  return live;
}

/** The connection, dialled when there is none. A refusal is remembered for a while: see {@link REFUSAL_MS}. */
function acquire(link: Link): Promise<Live> {
  if (link.refused && Date.now() < link.refused.until) return Promise.reject(link.refused.error);
  if (link.live) return link.live;
  const dialling = dialLink(link);
  link.live = dialling;
  dialling.catch((error: unknown) => {
    if (link.live === dialling) link.live = undefined;
    if (error instanceof RemoteError && ["auth", "hostkey"].includes(error.failure.reason))
      link.refused = { error, until: Date.now() + REFUSAL_MS };
  });
  return dialling;
}

async function forward(link: Link, host: string, port: number): Promise<Duplex> {
  const live = await acquire(link);
  return new Promise((resolve, reject) => {
    try {
      live.client.forwardOut("127.0.0.1", 0, host, port, (error, stream) => (error ? reject(error) : resolve(stream)));
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

function startSession(client: Client, command: string): Promise<ClientChannel> {
  return new Promise((resolve, reject) => {
    try {
      client.exec(command, (error, channel) => (error ? reject(error) : resolve(channel)));
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

function refusedForNow(error: unknown): boolean {
  const reason = typeof error === "object" && error !== null && "reason" in error ? error.reason : undefined;
  return reason === OPEN_FAILED || reason === RESOURCE_SHORTAGE;
}

/** The host allows fewer sessions than we thought: keep to what is open now. */
function shrink(link: Link): void {
  const now = Math.max(1, link.open);
  for (const lane of Object.values(link.lanes)) lane.concurrency = Math.min(lane.concurrency, now);
}

async function openSession(link: Link, command: string): Promise<{ channel: ClientChannel; live: Live }> {
  let redialled = false;
  let refusedSince: number | undefined;
  for (;;) {
    const live = await acquire(link);
    try {
      const channel = await startSession(live.client, command);
      counters.sessions++;
      return { channel, live };
    } catch (error) {
      if (refusedForNow(error)) {
        shrink(link);
        refusedSince = link.open > 0 ? undefined : (refusedSince ?? Date.now());
        if (refusedSince !== undefined && Date.now() - refusedSince > REFUSED_MS) throw noSession(link, error);
        // sshd frees a slot some time after it said so, hence the pause besides the event.
        await Promise.race([once(link.slots, "free"), sleep(SLOT_POLL_MS * (0.1 + Math.random()))]);
      } else if (live.closed || /^(Not connected|No response from server)$/.test(textOf(error))) {
        forget(link, live);
        if (redialled) throw lost(link, error);
        redialled = true;
        await Promise.resolve();
      } else throw noSession(link, error);
    }
  }
}

function noSession(link: Link, error: unknown): RemoteError {
  return failure(link.target.label, "channel", `${endpoint(link.target)} refuses a session: ${textOf(error)}`, {
    advice: "look at MaxSessions, ForceCommand and the user's shell on the host",
  });
}

function lost(link: Link, error: unknown): RemoteError {
  return failure(
    link.target.label,
    "disconnected",
    `the connection to ${endpoint(link.target)} broke twice before the command began`,
    { advice: "nothing was run. Check the network, and the host's sshd log" },
    error,
  );
}

/** Keeps the link in use around `work`, so that it is neither closed as idle nor lets the process end. */
export async function using<T>(link: Link, work: () => Promise<T>): Promise<T> {
  hold(link, 1);
  try {
    return await work();
  } finally {
    hold(link, -1);
  }
}

/** Runs `use` on a session of the lane as soon as there is room. A session that was begun is never begun twice. */
export function withSession<T>(
  link: Link,
  lane: Lane | "urgent",
  command: string,
  use: (channel: ClientChannel, live: Live) => Promise<T>,
): Promise<T> {
  const work = async () => {
    const { channel, live } = await openSession(link, command);
    link.open++;
    try {
      return await use(channel, live);
    } finally {
      link.open--;
      link.slots.emit("free");
    }
  };
  return using(link, () => (lane === "urgent" ? work() : link.lanes[lane].add<T>(work)));
}

/** Logs in, unless that is done. Who checks host keys in another way than the first user does so here too, at every hop. */
export async function connectLink(link: Link, target: Target): Promise<void> {
  const live = await using(link, () => acquire(link));
  const keyProblem = same(link.target, target) ? undefined : hostKeyCheck(target).problem(live.hostKey);
  if (keyProblem) throw keyProblem;
  if (link.via && target.via) await connectLink(link.via, target.via);
}

/** The round-trip time, dialling if need be. */
export async function roundTrip(link: Link): Promise<number> {
  return (await acquire(link)).roundTrip();
}
