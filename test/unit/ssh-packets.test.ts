import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import type { Client } from "ssh2";
import { reusePackets } from "../../provider/ssh/internals";

const BIG = 32 * 1024;

/** What ssh2's ciphers do: five bytes of lengths before what is to be sent, and all of it encrypted in its place. */
function cipher() {
  const made: Buffer[] = [];
  const allocPacket = (payload: number) => {
    const packet = Buffer.alloc(payload + 5);
    packet.writeUInt32BE(payload, 0);
    made.push(packet);
    return packet;
  };
  return { made, allocPacket };
}

/** A socket that is done with a packet when the test says so. */
function connection() {
  const done: ((error?: Error) => void)[] = [];
  const sock = new Writable({ highWaterMark: 1e9, write: (_chunk, _encoding, end) => void done.push(end) });
  sock.on("error", () => undefined);
  const first = cipher();
  const protocol = { _cipher: first };
  reusePackets({ _protocol: protocol } as unknown as Client, sock as never);
  const send = (payload: number) => {
    const packet = protocol._cipher.allocPacket(payload);
    assert.equal(packet.readUInt32BE(0), payload);
    packet.fill(0xff);
    sock.write(packet);
    return packet;
  };
  const settled = async (error?: Error) => {
    do {
      for (const end of done.splice(0)) end(error);
      await new Promise(setImmediate);
    } while (done.length > 0);
  };
  return { first, protocol, send, settled };
}

test("a large packet is used again when the socket is done with it, and not before", async () => {
  const { first, send, settled } = connection();
  const packet = send(BIG);
  assert.notEqual(send(BIG), packet);
  await settled();
  await settled();
  assert.equal(first.made.length, 2);
  for (let i = 0; i < 10; i++) {
    assert.ok(first.made.includes(send(BIG)));
    await settled();
  }
  assert.equal(first.made.length, 2);
});

test("packets of one piece leave in one call", async () => {
  const calls: number[] = [];
  const sock = new Writable({
    writev: (chunks, end) => {
      calls.push(chunks.length);
      end();
    },
  });
  const protocol = { _cipher: cipher() };
  reusePackets({ _protocol: protocol } as unknown as Client, sock as never);
  for (let piece = 0; piece < 2; piece++) {
    for (let i = 0; i < 5; i++) sock.write(protocol._cipher.allocPacket(BIG));
    await new Promise(setImmediate);
  }
  sock.write(protocol._cipher.allocPacket(100));
  assert.deepEqual(calls, [5, 5, 1]);
});

test("only full ones: of the greatest length there was", async () => {
  const { first, send, settled } = connection();
  for (const payload of [100, 100, BIG, BIG, BIG + 1, BIG + 1, BIG]) {
    send(payload);
    await settled();
  }
  assert.deepEqual(
    first.made.map(({ length }) => length - 5),
    [100, 100, BIG, BIG + 1, BIG],
  );
});

test("keys that are exchanged anew begin with packets of their own", async () => {
  const { first, protocol, send, settled } = connection();
  send(BIG);
  await settled();
  const second = cipher();
  protocol._cipher = second;
  send(BIG);
  await settled();
  send(BIG);
  assert.deepEqual([first.made.length, second.made.length], [1, 1]);
});

test("what could not be written is not used again", async () => {
  const { first, send, settled } = connection();
  send(BIG);
  await settled(new Error("gone"));
  send(BIG);
  assert.equal(first.made.length, 2);
});

test("another ssh2 without these insides is left as it is", () => {
  const sock = new Writable({ write: () => undefined });
  for (const protocol of [undefined, {}, { _cipher: {} }])
    reusePackets({ _protocol: protocol } as unknown as Client, sock as never);
  assert.ok(!Object.hasOwn(sock, "write"));
});
