/**
 * The three things ssh2 1.17 (pinned exactly) has no public way for. They fail closed: if a later ssh2 looks different,
 * certificates are not offered or the handshake fails, the connection counts as silent, and packets are not used again.
 */
import type { Duplex } from "node:stream";
import type { Client } from "ssh2";
import { certifiedKey, certifiedNames } from "./certificate";

interface KexInitLike {
  lists: Record<string, unknown> & { serverHostKey: { array: string[] } };
}
interface Kex {
  negotiated: { serverHostKey: string };
}
interface Cipher {
  allocPacket: (payload: number) => Buffer;
}
interface Protocol {
  _offer?: KexInitLike;
  _kex?: Kex;
  _cipher?: Cipher;
  ping?: () => void;
}
interface Internals {
  _protocol?: Protocol;
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

/** Packets of uploads; what is smaller Node clears away along with all else. */
const BIG = 16 * 1024;
/** What is on its way at once: as much as the other side lets come. */
const SPARE = 64;
/** How long the packet is and how much of it is padding. It was encrypted in its place. */
const HEAD = 5;

/**
 * ssh2 takes new memory for every packet, gigabytes of it with large uploads, and Node then searches all its memory every 64 MiB.
 * So a full packet that the socket is done with becomes the next one; what was padding in it is random still. Where ssh2 has no
 * ciphers of its own compilation it writes copies, and none comes back.
 */
function lending(cipher: Cipher, lent: WeakMap<Buffer, () => void>): void {
  const { allocPacket } = cipher;
  let full = 0;
  let head = Buffer.alloc(0);
  let packets: Buffer[] = [];
  cipher.allocPacket = (payload) => {
    const again = payload === full ? packets.pop() : undefined;
    if (again) return again.fill(head, 0, HEAD);
    const packet = allocPacket.call(cipher, payload);
    if (payload < Math.max(full, BIG)) return packet;
    if (payload > full) [full, head, packets] = [payload, Buffer.from(packet.subarray(0, HEAD)), []];
    const spare = packets;
    lent.set(packet, () => {
      if (spare.length < SPARE) spare.push(packet);
    });
    return packet;
  };
}

/** What ssh2 makes of one piece, a dozen packets, goes to the kernel in one call: a twentieth of the time of an upload. */
function leaveTogether(sock: Duplex): void {
  if (sock.writableCorked > 0) return;
  sock.cork();
  process.nextTick(() => sock.uncork());
}

/** Call once the client has logged in; keys, and with them ciphers, are exchanged anew later. */
export function reusePackets(client: Client, sock: Duplex): void {
  const protocol = internals(client)._protocol;
  let cipher = protocol?._cipher;
  if (!protocol || !cipher?.allocPacket) return;
  const lent = new WeakMap<Buffer, () => void>();
  lending(cipher, lent);
  Object.defineProperty(protocol, "_cipher", {
    get: () => cipher,
    set: (next: Cipher) => lending((cipher = next), lent),
  });
  const write = sock.write.bind(sock) as (chunk: unknown, done?: unknown) => boolean;
  sock.write = (chunk: unknown, ...rest: unknown[]) => {
    const back = Buffer.isBuffer(chunk) ? lent.get(chunk) : undefined;
    if (!back) return write(chunk, ...rest);
    leaveTogether(sock);
    return write(chunk, (error: unknown) => error ?? back());
  };
}
