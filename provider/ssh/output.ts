import { StringDecoder } from "node:string_decoder";
import type { ClientChannel } from "ssh2";

/** A command that floods its output must not flood our memory: beginning and end are kept. */
export const STDOUT_LIMIT = 16 * 1024 * 1024;
export const STDERR_LIMIT = 1024 * 1024;

export interface Capture {
  add: (chunk: Buffer) => void;
  text: () => string;
}

/** Collects bytes and decodes them once, so that no character is cut at a chunk border. */
export function capture(limit: number): Capture {
  const half = Math.floor(limit / 2);
  const head: Buffer[] = [];
  let headBytes = 0;
  let tail: Buffer[] = [];
  let tailBytes = 0;
  let dropped = 0;
  const squeeze = () => {
    const all = Buffer.concat(tail);
    dropped += all.length - half;
    tail = [Buffer.from(all.subarray(all.length - half))];
    tailBytes = half;
  };
  return {
    add: (chunk) => {
      const room = half - headBytes;
      const first = chunk.subarray(0, room);
      if (first.length) head.push(first);
      headBytes += first.length;
      const rest = chunk.subarray(first.length);
      if (!rest.length) return;
      tail.push(rest);
      tailBytes += rest.length;
      if (tailBytes > limit) squeeze();
    },
    text: () => {
      if (tailBytes > half) squeeze();
      const gap = dropped ? [Buffer.from(`\n… ${dropped} bytes left out …\n`)] : [];
      return Buffer.concat([...head, ...gap, ...tail]).toString("utf8");
    },
  };
}

/** Cuts a stream of bytes into lines; `end` gives what follows the last newline. */
export function lineSplitter(onLine: (line: string) => void): { add: (chunk: Buffer) => void; end: () => void } {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  const take = (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    parts.forEach((line) => onLine(line));
  };
  return {
    add: (chunk) => take(decoder.write(chunk)),
    end: () => {
      take(decoder.end());
      if (rest) onLine(rest);
      rest = "";
    },
  };
}

/** Reads up to a marker line; what login shells print before it is kept apart, what follows goes on untouched. */
export function markers(onMarker: (name: string) => void, onBody: (chunk: Buffer) => void) {
  const noise = capture(16 * 1024);
  let begun = false;
  let pending = Buffer.alloc(0);
  const add = (chunk: Buffer) => {
    if (begun) return onBody(chunk);
    pending = Buffer.concat([pending, chunk]);
    for (let end = pending.indexOf(10); end >= 0 && !begun; end = pending.indexOf(10)) {
      const line = pending.subarray(0, end).toString("utf8");
      const name = /kubexm:([a-z]+)$/.exec(line)?.[1];
      if (name) onMarker(name);
      else noise.add(pending.subarray(0, end + 1));
      pending = pending.subarray(end + 1);
      begun = name === BEGIN;
    }
    if (begun && pending.length) onBody(pending);
  };
  return { add, begun: () => begun, noise: () => (noise.text() + (begun ? "" : pending.toString("utf8"))).trim() };
}

export const BEGIN = "begin";

export interface Ending {
  /** undefined: the connection broke; null: killed by a signal. */
  code: number | null | undefined;
  signal?: string | undefined;
}

/** A daemon that inherited the channel's outputs keeps it open after the command has ended. */
const GRACE_MS = 2_000;
/** A slow link brings what was said long after the end; one that goes on talking is a daemon. */
const LATE_MS = 60_000;

/**
 * How the command ended. Outputs are always read, even when nobody wants them: an unread channel never closes.
 * `abandon` stops waiting for a host that does not close the channel.
 */
export function ending(channel: ClientChannel, onStdout: (b: Buffer) => void, onStderr: (b: Buffer) => void) {
  let result: Ending = { code: undefined };
  let grace: NodeJS.Timeout | undefined;
  let abandon: () => void = () => undefined;
  const done = new Promise<Ending>((resolve) => {
    abandon = () => {
      clearTimeout(grace);
      channel.close();
      resolve(result);
    };
    let exited = 0;
    const heard = (listener: (chunk: Buffer) => void) => (chunk: Buffer) => {
      if (Date.now() - exited < LATE_MS) grace?.refresh();
      listener(chunk);
    };
    channel.on("data", heard(onStdout));
    channel.stderr.on("data", heard(onStderr));
    channel.on("error", () => undefined); // its cause shows in the exit code, or in there being none
    channel.on("exit", (code: number | null, signal?: string) => {
      result = { code, signal };
      exited = Date.now();
      grace = setTimeout(abandon, GRACE_MS);
    });
    // A command that ends at once may have told its exit before anybody listened; the close says it again.
    channel.on("close", (code?: number | null, signal?: string) => {
      if (result.code === undefined && code !== undefined) result = { code, signal };
      abandon();
    });
  });
  return { done, abandon };
}
