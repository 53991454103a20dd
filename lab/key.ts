import { generateKeyPairSync, randomBytes } from "node:crypto";

const KIND = "ssh-ed25519";
const BLOCK = 8;

function field(data: string | Buffer): Buffer {
  const body = Buffer.from(data);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(body.length);
  return Buffer.concat([size, body]);
}

const fields = (...all: readonly (string | Buffer)[]) => Buffer.concat(all.map(field));

function padded(body: Buffer): Buffer {
  const missing = (BLOCK - (body.length % BLOCK)) % BLOCK;
  return Buffer.concat([body, Buffer.from(Array.from({ length: missing }, (_, i) => i + 1))]);
}

export interface SshKey {
  /** OpenSSH's own format, without a passphrase. */
  privateKey: string;
  /** One line of authorized_keys. */
  publicKey: string;
}

/** A new ed25519 key. (The generator of ssh2 makes one in 256 unreadable: it drops a leading zero byte.) */
export function makeSshKey(comment: string): SshKey {
  const { x = "", d = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const open = Buffer.from(x, "base64url");
  const secret = Buffer.from(d, "base64url");
  const check = randomBytes(4);
  const publicBlob = fields(KIND, open);
  const inner = [check, check, fields(KIND, open, Buffer.concat([secret, open]), comment)];
  const one = Buffer.from([0, 0, 0, 1]);
  const file = Buffer.concat([
    Buffer.from("openssh-key-v1\0"),
    fields("none", "none", ""),
    one,
    fields(publicBlob, padded(Buffer.concat(inner))),
  ]);
  const text = file.toString("base64").replaceAll(/.{70}/g, "$&\n");
  return {
    privateKey: `-----BEGIN OPENSSH PRIVATE KEY-----\n${text}\n-----END OPENSSH PRIVATE KEY-----\n`,
    publicKey: `${KIND} ${publicBlob.toString("base64")} ${comment}`,
  };
}
