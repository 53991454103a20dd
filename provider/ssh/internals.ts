/**
 * The two things ssh2 1.17 (pinned exactly) has no public way for. Both fail closed: if a later ssh2 looks different,
 * certificates are not offered or the handshake fails, and the connection counts as silent.
 */
import type { Client } from "ssh2";
import { certifiedKey, isCertificate } from "./certificate";
import { keyType } from "./known-hosts";

interface KexInitLike {
  lists: Record<string, unknown> & { serverHostKey: { array: string[] } };
}
interface Kex {
  negotiated: { serverHostKey: string };
  _hostKey?: Buffer | undefined;
}
interface Internals {
  _protocol?: { _offer?: KexInitLike; _kex?: Kex; ping?: () => void };
  _callbacks?: ((failed: unknown) => void)[];
}

const internals = (client: Client) => client as unknown as Internals;

/** Asks the server for a sign of life; `alive` is called for any answer. */
export function ping(client: Client, alive: () => void): void {
  const { _protocol, _callbacks } = internals(client);
  if (!_protocol?.ping || !_callbacks) return;
  _callbacks.push((failed) => {
    if (!(failed instanceof Error)) alive();
  });
  _protocol.ping();
}

function listsForOffer(offer: KexInitLike, serverHostKey: readonly string[]) {
  const plain = (entry: unknown): unknown =>
    typeof entry !== "object" || entry === null || Buffer.isBuffer(entry)
      ? entry
      : "array" in entry
        ? entry.array
        : Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, plain(value)]));
  const lists = Object.fromEntries(Object.entries(offer.lists).map(([key, value]) => [key, plain(value)]));
  return { ...lists, serverHostKey };
}

/** Puts certificate algorithms, which ssh2 refuses in its options, into the offer. Call between connect() and the first packet. */
export function offerHostKeyAlgorithms(client: Client, algorithms: readonly string[]): void {
  const protocol = internals(client)._protocol;
  const offer = protocol?._offer;
  if (!protocol || !offer) return;
  const KexInit = offer.constructor as new (lists: unknown) => KexInitLike;
  protocol._offer = new KexInit(listsForOffer(offer, algorithms));
}

/**
 * Lets ssh2 check the host's signature with the key inside an accepted certificate. ssh2 reads `_hostKey` once for the
 * exchange hash, which covers the certificate, and from then on for the public key: it gets the one, then the other.
 */
export function useCertifiedKey(client: Client, blob: Buffer): void {
  const kex = internals(client)._protocol?._kex;
  if (!kex || !isCertificate(blob) || kex._hostKey?.equals(blob) !== true) return;
  const key = certifiedKey(blob);
  let value: Buffer | undefined = blob;
  let reads = 0;
  Object.defineProperty(kex, "_hostKey", {
    configurable: true,
    get: () => (reads++ === 0 || value === undefined ? value : key),
    set: (next: Buffer | undefined) => {
      value = next;
      reads = 0;
    },
  });
  kex.negotiated.serverHostKey = keyType(key);
}
