import assert from "node:assert/strict";
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { test } from "node:test";
import { certificateProblem, certifiedKey, isCertificate, sshString } from "../../provider/ssh/certificate";
import { entriesFor, parseKnownHosts } from "../../provider/ssh/known-hosts";
import { newKey } from "./ssh-server";

interface Authority {
  blob: Buffer;
  sign: (data: Buffer) => Buffer;
}

const mpint = (value: Buffer) => sshString((value[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.alloc(1), value]) : value);
const part = (key: KeyObject, name: "x" | "y" | "n" | "e") =>
  Buffer.from(key.export({ format: "jwk" })[name] ?? "", "base64url");

function ed25519(): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const type = sshString("ssh-ed25519");
  return {
    blob: Buffer.concat([type, sshString(part(publicKey, "x"))]),
    sign: (data) => Buffer.concat([type, sshString(sign(null, data, privateKey))]),
  };
}

function ecdsa(curve: string, namedCurve: string, hash: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve });
  const type = sshString(`ecdsa-sha2-${curve}`);
  const point = Buffer.concat([Buffer.from([4]), part(publicKey, "x"), part(publicKey, "y")]);
  return {
    blob: Buffer.concat([type, sshString(curve), sshString(point)]),
    sign: (data) => {
      const raw = sign(hash, data, { key: privateKey, dsaEncoding: "ieee-p1363" });
      const half = raw.length / 2;
      return Buffer.concat([type, sshString(Buffer.concat([mpint(raw.subarray(0, half)), mpint(raw.subarray(half))]))]);
    },
  };
}

function rsa(algorithm: string, hash: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    blob: Buffer.concat([sshString("ssh-rsa"), mpint(part(publicKey, "e")), mpint(part(publicKey, "n"))]),
    sign: (data) => Buffer.concat([sshString(algorithm), sshString(sign(hash, data, privateKey))]),
  };
}

const hostKey = Buffer.from(newKey().public.split(" ")[1] ?? "", "base64");
const NOW = new Date("2030-01-01T00:00:00Z");
const seconds = (offset: number) => BigInt(NOW.getTime() / 1000 + offset);

interface Fields {
  kind: number;
  principals: readonly string[];
  after: bigint;
  before: bigint;
  critical: Buffer;
  tail: Buffer;
}

const uint = (value: number) => {
  const out = Buffer.alloc(4);
  out.writeUInt32BE(value);
  return out;
};
const uint64 = (value: bigint) => {
  const out = Buffer.alloc(8);
  out.writeBigUInt64BE(value);
  return out;
};

function certificate(authority: Authority, more: Partial<Fields> = {}): Buffer {
  const all: Fields = {
    kind: 2,
    principals: ["h1"],
    after: seconds(-60),
    before: seconds(60),
    critical: Buffer.alloc(0),
    tail: Buffer.alloc(0),
    ...more,
  };
  const body = Buffer.concat([
    sshString("ssh-ed25519-cert-v01@openssh.com"),
    sshString("nonce"),
    hostKey.subarray(4 + 11), // after its type
    uint64(7n),
    uint(all.kind),
    sshString("id"),
    sshString(Buffer.concat(all.principals.map(sshString))),
    uint64(all.after),
    uint64(all.before),
    sshString(all.critical),
    sshString(""),
    sshString(""),
    sshString(authority.blob),
  ]);
  return Buffer.concat([body, sshString(authority.sign(body)), all.tail]);
}

function problem(blob: Buffer, known: string, address = "h1"): string | undefined {
  return certificateProblem(blob, entriesFor(parseKnownHosts(known, "kh"), address, 22), address, NOW);
}

const line = (type: string, blob: Buffer, mark = "@cert-authority") => `${mark} * ${type} ${blob.toString("base64")}\n`;
const typeOf = (blob: Buffer) => blob.subarray(4, 4 + blob.readUInt32BE(0)).toString();
const trust = (authority: Authority) => line(typeOf(authority.blob), authority.blob);

const authorities: readonly [string, Authority][] = [
  ["ed25519", ed25519()],
  ["ecdsa p256", ecdsa("nistp256", "P-256", "sha256")],
  ["ecdsa p384", ecdsa("nistp384", "P-384", "sha384")],
  ["ecdsa p521", ecdsa("nistp521", "P-521", "sha512")],
  ["rsa sha256", rsa("rsa-sha2-256", "sha256")],
  ["rsa sha512", rsa("rsa-sha2-512", "sha512")],
];

for (const [name, authority] of authorities) {
  test(`a certificate signed by ${name} is good`, () => {
    for (let i = 0; i < 20; i++) assert.equal(problem(certificate(authority), trust(authority)), undefined);
  });
  test(`one flipped bit spoils a certificate signed by ${name}`, () => {
    const blob = certificate(authority);
    const at = blob.indexOf("nonce") + 1;
    blob.writeUInt8(blob.readUInt8(at) ^ 1, at);
    assert.match(problem(blob, trust(authority)) ?? "", /signature is wrong/);
  });
}

const ca = ed25519();
const sha1 = rsa("ssh-rsa", "sha1");
const refusals: readonly [name: string, blob: Buffer, known: string, says: RegExp][] = [
  ["unknown authority", certificate(ed25519()), trust(ca), /no @cert-authority line/],
  ["authority known as a plain key only", certificate(ca), line("ssh-ed25519", ca.blob, ""), /no @cert-authority line/],
  ["user certificate", certificate(ca, { kind: 1 }), trust(ca), /user certificate/],
  ["another host", certificate(ca, { principals: ["h2", "*"] }), trust(ca), /for h2, \*, not for h1/],
  ["nobody", certificate(ca, { principals: [] }), trust(ca), /for nobody by name/],
  ["not yet", certificate(ca, { after: seconds(1) }), trust(ca), /valid only from 2030/],
  ["no longer", certificate(ca, { before: seconds(0) }), trust(ca), /valid until 2030/],
  ["critical option", certificate(ca, { critical: sshString("x") }), trust(ca), /critical option/],
  ["SHA-1 signature", certificate(sha1), trust(sha1), /signature is wrong/],
  ["authority revoked", certificate(ca), trust(ca) + line("ssh-ed25519", ca.blob, "@revoked"), /revoked at kh:2/],
  ["host key revoked", certificate(ca), trust(ca) + line("ssh-ed25519", hostKey, "@revoked"), /revoked at kh:2/],
  ["something behind it", certificate(ca, { tail: Buffer.from("x") }), trust(ca), /cannot be read/],
  ["cut off", certificate(ca).subarray(0, 150), trust(ca), /cannot be read/],
];

for (const [name, blob, known, says] of refusals)
  test(`a host certificate is refused: ${name}`, () => {
    assert.match(problem(blob, known) ?? "(accepted)", says);
  });

test("a certificate names its key", () => {
  const blob = certificate(ca);
  assert.equal(isCertificate(blob), true);
  assert.equal(isCertificate(hostKey), false);
  assert.deepEqual(certifiedKey(blob), hostKey);
});
