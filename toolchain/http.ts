import http from "node:http";
import https from "node:https";
import { BlockList, isIP } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { UserError } from "./errors.js";

/** An answer that is not the wanted one. */
export class HttpError extends UserError {
  constructor(readonly status: number) {
    super(`HTTP ${status} ${http.STATUS_CODES[status] ?? ""}`.trimEnd());
  }
}

/** An answer that would be the same another time. */
export class UselessError extends UserError {}

/** No answer, or none any more, for longer than we wait. */
export class SilenceError extends UserError {}

export interface GetOptions {
  /** How long to wait for the first answer; short where another way exists. */
  answerTimeoutMs?: number;
  /** How long nothing may come in the middle of an answer. */
  idleTimeoutMs?: number;
  /** Certificates to trust beside the well-known ones. */
  ca?: string;
  /** The byte to begin with, where the server can: its answer is 206 then, and 200 from one that cannot. */
  first?: number;
}

const ANSWER_MS = 30_000;
const IDLE_MS = 60_000;
const REDIRECTS = 10;
const MOST_TEXT = 8 * 2 ** 20;

const env = (name: string) => process.env[name] ?? process.env[name.toUpperCase()] ?? "";

const bareHost = (host: string) => host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
const family = (address: string) => (isIP(address) === 6 ? "ipv6" : "ipv4");

function inNetwork(host: string, network: string, bits: number): boolean {
  if (isIP(host) !== isIP(network) || !(bits >= 0 && bits <= (isIP(network) === 6 ? 128 : 32))) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, family(network));
  return list.check(host, family(host));
}

/** Whether an entry of no_proxy means this address: a name and what is below it, a network, either of a port only. */
function means(entry: string, url: URL): boolean {
  const host = bareHost(url.hostname);
  const [network = "", bits] = entry.split("/");
  if (isIP(network) > 0) return bits === undefined ? host === bareHost(entry) : inNetwork(host, network, Number(bits));
  const [, name = "", port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (port !== undefined && port !== (url.port || (url.protocol === "https:" ? "443" : "80"))) return false;
  const domain = bareHost(name).replace(/^\*?\./, "");
  return domain === "*" || (domain !== "" && (host === domain || host.endsWith(`.${domain}`)));
}

/** The proxy that the environment names for this address (http_proxy, https_proxy, no_proxy in either case). */
export function proxyFor(url: URL): URL | undefined {
  const direct = env("no_proxy")
    .split(",")
    .some((entry) => means(entry.trim(), url));
  const proxy = direct ? "" : env(url.protocol === "https:" ? "https_proxy" : "http_proxy");
  if (proxy === "") return undefined;
  return new URL(proxy.includes("://") ? proxy : `http://${proxy}`);
}

/** An address as people and files may see it: without the login that may stand in it. */
export const openUrl = (url: string): string => url.replace(/^(\w+:\/\/)[^/?#]*@/, "$1***@");

function login({ username, password }: URL): Record<string, string> {
  if (username === "") return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
}

const client = (url: URL) => (url.protocol === "https:" ? https : http);

/** A way through the proxy to the server, on which TLS can be spoken. */
function tunnel(proxy: URL, url: URL, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    client(proxy)
      .request(proxy, {
        method: "CONNECT",
        path: `${url.hostname}:${url.port || "443"}`,
        headers: login(proxy),
        agent: false,
        signal,
      })
      .once("connect", (answer, socket) => {
        if (answer.statusCode === 200) resolve(socket);
        else reject(new UserError(`the proxy ${proxy.host} says HTTP ${answer.statusCode ?? "?"}`));
      })
      .once("error", reject)
      .end();
  });
}

async function request(url: URL, { ca, first = 0 }: GetOptions, signal: AbortSignal): Promise<http.ClientRequest> {
  const headers = first > 0 ? { range: `bytes=${first}-` } : {};
  const secure = { servername: url.hostname, ca: ca === undefined ? undefined : [...tls.rootCertificates, ca] };
  const proxy = proxyFor(url);
  if (proxy === undefined) return client(url).request(url, { agent: false, signal, ca: secure.ca, headers });
  if (url.protocol === "http:")
    return http.request(proxy, {
      path: url.href,
      headers: { host: url.host, ...headers, ...login(proxy) },
      agent: false,
      signal,
    });
  const socket = await tunnel(proxy, url, signal);
  return https.request(url, { createConnection: () => tls.connect({ ...secure, socket }), signal, headers });
}

async function answer(url: URL, options: GetOptions, signal: AbortSignal): Promise<http.IncomingMessage> {
  const sent = await request(url, options, signal);
  const got = await new Promise<http.IncomingMessage>((resolve, reject) => {
    // Not once: a connection that breaks in the middle of the body is told here, too.
    sent.once("response", resolve).on("error", reject).end();
  });
  const { idleTimeoutMs = IDLE_MS } = options;
  got.setTimeout(idleTimeoutMs, () =>
    got.destroy(new SilenceError(`nothing more came from ${url.host} for ${idleTimeoutMs / 1000} s`)),
  );
  return got;
}

/** The body of a good answer as a stream; redirects are followed, proxies of the environment are used. */
export async function get(address: string, options: GetOptions = {}): Promise<http.IncomingMessage> {
  const { answerTimeoutMs = ANSWER_MS } = options;
  let url = new URL(address);
  for (let hop = 0; hop < REDIRECTS; hop++) {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), answerTimeoutMs);
    try {
      const got = await answer(url, options, patience.signal);
      const { statusCode: status = 0, headers } = got;
      if (status === 200 || status === 206) return got;
      got.resume();
      if (status < 300 || status > 399 || headers.location === undefined) throw new HttpError(status);
      const next = new URL(headers.location, url);
      if (url.protocol === "https:" && next.protocol !== "https:")
        throw new UselessError(`${openUrl(url.href)} leads away from https to ${openUrl(next.href)}`);
      url = next;
    } catch (error) {
      if (!patience.signal.aborted) throw error;
      throw new SilenceError(`no answer from ${url.host} within ${answerTimeoutMs / 1000} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
  throw new UselessError(`more than ${REDIRECTS} redirects`);
}

export async function getText(address: string, options: GetOptions = {}): Promise<string> {
  const body = await get(address, options);
  let size = 0;
  const parts: Buffer[] = [];
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MOST_TEXT) throw new UselessError(`the answer is longer than ${MOST_TEXT >> 20} MiB`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
