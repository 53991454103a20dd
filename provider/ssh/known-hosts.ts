import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { patternsMatch } from "./ssh-config";

export interface KnownHost {
  file: string;
  line: number;
  marker?: "cert-authority" | "revoked";
  hosts: string;
  type: string;
  key: Buffer;
}

export type KeyVerdict =
  | { status: "known"; entry: KnownHost }
  | { status: "revoked"; entry: KnownHost }
  | { status: "changed"; entries: readonly KnownHost[] }
  | { status: "unknown" };

export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
}

/** The name that stands first in every SSH key or certificate blob. */
export function keyType(key: Buffer): string {
  if (key.length < 4) return "";
  return key.subarray(4, 4 + key.readUInt32BE(0)).toString("latin1");
}

/** How known_hosts names a host: the port is written only when it is not 22. */
export function hostToken(address: string, port: number): string {
  const name = address.toLowerCase();
  return port === 22 ? name : `[${name}]:${port}`;
}

function parseLine(text: string, file: string, line: number): KnownHost[] {
  const fields = text.trim().split(/\s+/);
  const marker = fields[0] === "@cert-authority" || fields[0] === "@revoked" ? fields.shift() : undefined;
  const [hosts, type, base64] = fields;
  if (!hosts || !type || !base64 || hosts.startsWith("#") || hosts.startsWith("@")) return [];
  const key = Buffer.from(base64, "base64");
  if (keyType(key) !== type) return [];
  const mark = marker && { marker: marker.slice(1) as NonNullable<KnownHost["marker"]> };
  return [{ file, line, ...mark, hosts, type, key }];
}

/** Lines that are no known_hosts entries (comments, damaged ones) are passed over, as ssh does. */
export function parseKnownHosts(text: string, file: string): KnownHost[] {
  return text.split(/\r?\n/).flatMap((line, index) => parseLine(line, file, index + 1));
}

function hashedMatch(hosts: string, token: string): boolean {
  const [, , salt, hash] = hosts.split("|");
  if (!salt || !hash) return false;
  const want = Buffer.from(hash, "base64");
  const have = createHmac("sha1", Buffer.from(salt, "base64")).update(token).digest();
  return want.length === have.length && timingSafeEqual(want, have);
}

export function entryMatches(entry: KnownHost, token: string): boolean {
  return entry.hosts.startsWith("|1|") ? hashedMatch(entry.hosts, token) : patternsMatch(entry.hosts.split(","), token);
}

/** Entries for one host: its keys, the authorities trusted for it, and what is revoked for it. */
export interface HostEntries {
  keys: readonly KnownHost[];
  authorities: readonly KnownHost[];
  revoked: readonly KnownHost[];
  /** Keys recorded for the host without its port: they may admit, but never accuse. */
  portless: readonly KnownHost[];
}

export function entriesFor(entries: readonly KnownHost[], address: string, port: number): HostEntries {
  const token = hostToken(address, port);
  const mine = entries.filter((entry) => entryMatches(entry, token));
  const plain = port === 22 ? [] : entries.filter((entry) => entryMatches(entry, hostToken(address, 22)));
  return {
    keys: mine.filter((entry) => !entry.marker),
    authorities: [...mine, ...plain].filter((entry) => entry.marker === "cert-authority"),
    revoked: [...mine, ...plain].filter((entry) => entry.marker === "revoked"),
    portless: plain.filter((entry) => !entry.marker),
  };
}

/** Stricter than ssh in one point: a host known by another type of key counts as changed, not as new. */
export function judgeKey(host: HostEntries, key: Buffer): KeyVerdict {
  const same = (entry: KnownHost) => entry.key.equals(key);
  const revoked = host.revoked.find(same);
  if (revoked) return { status: "revoked", entry: revoked };
  const known = host.keys.find(same) ?? (host.keys.length ? undefined : host.portless.find(same));
  if (known) return { status: "known", entry: known };
  return host.keys.length ? { status: "changed", entries: host.keys } : { status: "unknown" };
}
