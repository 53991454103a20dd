import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { messageOf } from "../../toolchain/errors.js";

/** What the mirror knows about an address: the file, or that it is still being made, or nothing. */
export type Lookup = (path: string) => { file: string } | "pending" | undefined;

export interface Range {
  first: number;
  last: number;
}

/** The one range that a header asks for; `undefined`: all of it; `"bad"`: none of the file's bytes. */
export function parseRange(text: string | undefined, size: number): Range | "bad" | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(text ?? "") ?? [];
  if (from === undefined || to === undefined || (from === "" && to === "")) return undefined;
  // `-500` means the last 500 bytes.
  const first = from === "" ? Math.max(0, size - Number(to)) : Number(from);
  const last = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  return first > last || first >= size ? "bad" : { first, last };
}

function say(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", ...headers }).end(`${text}\n`);
}

async function send(request: IncomingMessage, response: ServerResponse, file: string): Promise<void> {
  const { size, mtimeMs, mtime } = await stat(file);
  const etag = `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`;
  const headers = { etag, "last-modified": mtime.toUTCString(), "accept-ranges": "bytes" };
  if (request.headers["if-none-match"] === etag) {
    response.writeHead(304, headers).end();
    return;
  }
  // A client that resumes says what it has the beginning of; another file is sent whole.
  const had = request.headers["if-range"];
  const range = had === undefined || had === etag ? parseRange(request.headers.range, size) : undefined;
  if (range === "bad") return say(response, 416, "no such bytes", { "content-range": `bytes */${size}` });
  const { first, last } = range ?? { first: 0, last: size - 1 };
  response.writeHead(range ? 206 : 200, {
    ...headers,
    "content-type": "application/octet-stream",
    "content-length": last - first + 1,
    ...(range && { "content-range": `bytes ${first}-${last}/${size}` }),
  });
  if (request.method === "HEAD" || size === 0) response.end();
  else await pipeline(createReadStream(file, { start: first, end: last }), response);
}

async function answer(request: IncomingMessage, response: ServerResponse, lookup: Lookup): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD")
    return say(response, 405, "only GET and HEAD", { allow: "GET, HEAD" });
  const { pathname } = new URL(request.url ?? "/", "http://mirror");
  const found = lookup(decodeURIComponent(pathname).slice(1));
  if (found === undefined) return say(response, 404, "this mirror does not have it");
  if (found === "pending") return say(response, 503, "still being built", { "retry-after": "5" });
  await send(request, response, found.file);
}

/** Serves files by address; understands ranges and ETags, so that a download can be taken up again. */
export function fileServer(lookup: Lookup): RequestListener {
  return (request, response) => {
    answer(request, response, lookup).catch((error: unknown) => {
      if (error instanceof URIError) say(response, 400, "not an address");
      else if (response.headersSent) response.destroy();
      else say(response, 500, messageOf(error));
    });
  };
}
