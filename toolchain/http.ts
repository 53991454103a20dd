import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import tls from "node:tls";
import { UserError } from "./errors.js";

/** An answer that is not the wanted one. */
export class HttpError extends UserError {
  constructor(readonly status: number) {
    super(`HTTP ${status} ${http.STATUS_CODES[status] ?? ""}`.trimEnd());
  }
}

export interface GetOptions {
  /** How long to wait for the first answer; short where another way exists. */
  answerTimeoutMs?: number;
  /** Certificates to trust beside the well-known ones. */
  ca?: string;
}

const ANSWER_MS = 30_000;
const IDLE_MS = 60_000;
const REDIRECTS = 10;

const env = (name: string) => process.env[name] ?? process.env[name.toUpperCase()] ?? "";

/** The proxy that the environment names for this address (http_proxy, https_proxy, no_proxy in either case). */
export function proxyFor(url: URL): URL | undefined {
  const direct = env("no_proxy")
    .split(",")
    .map((entry) => entry.trim().replace(/^\*?\./, ""))
    .some((name) => name === "*" || (name !== "" && (url.hostname === name || url.hostname.endsWith(`.${name}`))));
  const proxy = direct ? "" : env(url.protocol === "https:" ? "https_proxy" : "http_proxy");
  if (proxy === "") return undefined;
  return new URL(proxy.includes("://") ? proxy : `http://${proxy}`);
}

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

async function request(url: URL, ca: string | undefined, signal: AbortSignal): Promise<http.ClientRequest> {
  const secure = { servername: url.hostname, ca: ca === undefined ? undefined : [...tls.rootCertificates, ca] };
  const proxy = proxyFor(url);
  if (proxy === undefined) return client(url).request(url, { agent: false, signal, ca: secure.ca });
  if (url.protocol === "http:")
    return http.request(proxy, { path: url.href, headers: { host: url.host, ...login(proxy) }, agent: false, signal });
  const socket = await tunnel(proxy, url, signal);
  return https.request(url, { createConnection: () => tls.connect({ ...secure, socket }), signal });
}

async function answer(url: URL, ca: string | undefined, signal: AbortSignal): Promise<http.IncomingMessage> {
  const sent = await request(url, ca, signal);
  return new Promise((resolve, reject) => {
    sent
      .once("response", resolve)
      .once("error", reject)
      .setTimeout(IDLE_MS, () => sent.destroy(new UserError(`nothing came for ${IDLE_MS / 1000} s`)))
      .end();
  });
}

/** The body of a good answer as a stream; redirects are followed, proxies of the environment are used. */
export async function get(address: string, options: GetOptions = {}): Promise<http.IncomingMessage> {
  const { answerTimeoutMs = ANSWER_MS, ca } = options;
  let url = new URL(address);
  for (let hop = 0; hop < REDIRECTS; hop++) {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), answerTimeoutMs);
    try {
      const got = await answer(url, ca, patience.signal);
      const { statusCode: status = 0, headers } = got;
      if (status === 200) return got;
      got.resume();
      if (status < 300 || status > 399 || headers.location === undefined) throw new HttpError(status);
      const next = new URL(headers.location, url);
      if (url.protocol === "https:" && next.protocol !== "https:")
        throw new UserError(`${url.href} leads away from https to ${next.href}`);
      url = next;
    } catch (error) {
      if (!patience.signal.aborted) throw error;
      throw new UserError(`no answer from ${url.host} within ${answerTimeoutMs / 1000} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
  throw new UserError(`${address}: more than ${REDIRECTS} redirects`);
}

export async function getText(address: string, options: GetOptions = {}): Promise<string> {
  return text(await get(address, options));
}
