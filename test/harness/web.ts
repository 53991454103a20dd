import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";

const servers: Server[] = [];

/** A web server on this machine until `closeServers`; with a certificate it speaks TLS. */
export async function serve(listener: RequestListener, tls?: { cert: string; key: string }): Promise<string> {
  const server = tls ? https.createServer({ cert: tls.cert, key: tls.key }, listener) : createServer(listener);
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
}

/** The server that was started last. */
export const lastServer = () => servers.at(-1);

/** Answers one request after the other with what stands in the list, the last one again and again. */
export function answers(...list: readonly RequestListener[]) {
  const asked: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    list[Math.min(asked.push(request), list.length) - 1]?.(request, response);
  };
  return { listener, asked };
}

export const status =
  (code: number, headers: Record<string, string> = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(code, headers).end();

export const page: RequestListener = (_, response) =>
  void response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<html>Please log in</html>");

/** The bytes from the one that is asked for on; if `cut` says so, the connection breaks after some of them, when `kept` is fulfilled. */
export const bytes =
  (body: Buffer, cut?: number, kept: (last: number) => Promise<unknown> = () => Promise.resolve()): RequestListener =>
  (request, response) => {
    const first = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (first >= body.length) return void response.writeHead(416).end();
    response.writeHead(first > 0 ? 206 : 200, {
      "content-length": body.length - first,
      ...(first > 0 && { "content-range": `bytes ${first}-${body.length - 1}/${body.length}` }),
    });
    const part = body.subarray(first, cut === undefined ? body.length : first + cut);
    if (cut === undefined) response.end(part);
    else response.write(part, () => void kept(first + cut).then(() => response.destroy()));
  };
