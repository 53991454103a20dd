/**
 * The two things ssh2 1.17 (pinned exactly) has no public way for. Both fail closed: if a later ssh2 looks different,
 * certificates are not offered or the handshake fails, and the connection counts as silent.
 */
import type { Client } from "ssh2";
import { certifiedKey, certifiedNames } from "./certificate";

interface KexInitLike {
  lists: Record<string, unknown> & { serverHostKey: { array: string[] } };
}
interface Kex {
  negotiated: { serverHostKey: string };
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

/**
 * Lets ssh2 check the host's signature with the key inside a certificate. It wants the type of what is shown to be what was agreed on,
 * and then the name of the signature: it finds the one until the host has shown its key, then the other. ssh2 reads `_hostKey` once for
 * the exchange hash, which covers the certificate, and from then on for the public key: it gets the one, then the other.
 */
function expectCertificate(kex: Kex): void {
  const names = certifiedNames(kex.negotiated.serverHostKey);
  if (!names) return;
  kex.negotiated.serverHostKey = names.type;
  let shown: Buffer | undefined;
  let reads = 0;
  Object.defineProperty(kex, "_hostKey", {
    get: () => (reads++ === 0 || shown === undefined ? shown : certifiedKey(shown)),
    set: (next: Buffer | undefined) => {
      shown = next;
      reads = 0;
      kex.negotiated.serverHostKey = names.signature;
    },
  });
}

/**
 * Offers certificate algorithms, which ssh2 refuses in its options, and lets it take what they bring. Call between connect() and the
 * first packet.
 */
export function offerHostKeyAlgorithms(client: Client, algorithms: readonly string[]): void {
  const protocol = internals(client)._protocol;
  const offer = protocol?._offer;
  if (!protocol || !offer) return;
  const KexInit = offer.constructor as new (lists: unknown) => KexInitLike;
  protocol._offer = new KexInit(listsForOffer(offer, algorithms));
  let kex = protocol._kex;
  Object.defineProperty(protocol, "_kex", {
    get: () => kex,
    set: (next: Kex) => expectCertificate((kex = next)),
  });
}
