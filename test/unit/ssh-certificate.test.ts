import assert from "node:assert/strict";
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import ssh2, { type ParsedKey } from "ssh2";
import { sh } from "../../provider/shell";
import { closeAll, connect } from "../../provider/ssh";
import { certificateProblem, certifiedKey, isCertificate, sshString } from "../../provider/ssh/certificate";
import { entriesFor, parseKnownHosts } from "../../provider/ssh/known-hosts";
import { refusal } from "../harness/refusal";
import { folder, newKey, startServer } from "./ssh-server";

interface Authority {
  blob: Buffer;
  sign: (data: Buffer) => Buffer;
}

const typeOf = (blob: Buffer) => blob.subarray(4, 4 + blob.readUInt32BE(0)).toString();
/** As short as can be: longer ones are no signatures to OpenSSL. */
const mpint = (value: Buffer) => {
  const digits = value.subarray(value.findIndex((byte) => byte > 0));
  return sshString((digits[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.alloc(1), digits]) : digits);
};
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
  /** The certified key. */
  host: Buffer;
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
    host: hostKey,
    ...more,
  };
  const type = typeOf(all.host);
  const body = Buffer.concat([
    sshString(`${type}-cert-v01@openssh.com`),
    sshString("nonce"),
    all.host.subarray(4 + type.length),
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
const trust = (authority: Authority) => line(typeOf(authority.blob), authority.blob);

/** Each signs as the algorithm of this name. */
const authorities: readonly [string, Authority][] = [
  ["ssh-ed25519", ed25519()],
  ["ecdsa-sha2-nistp256", ecdsa("nistp256", "P-256", "sha256")],
  ["ecdsa-sha2-nistp384", ecdsa("nistp384", "P-384", "sha384")],
  ["ecdsa-sha2-nistp521", ecdsa("nistp521", "P-521", "sha512")],
  ["rsa-sha2-256", rsa("rsa-sha2-256", "sha256")],
  ["rsa-sha2-512", rsa("rsa-sha2-512", "sha512")],
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

test("a plain key is no certificate", () => {
  assert.equal(isCertificate(hostKey), false);
});

for (const [name, { blob: host }] of authorities)
  test(`a certificate names its key: ${name}`, () => {
    const blob = certificate(ca, { host });
    assert.equal(isCertificate(blob), true);
    assert.deepEqual(certifiedKey(blob), host);
  });

interface Exchanging {
  _protocol: { _kex: { negotiated: { serverHostKey: string } } };
}

/** A key that ssh2's server shows certified, as sshd does: it is looked for by the algorithm, and signs in its own way. */
function certified(algorithm: string, host: Authority, signs: Authority, exchanging: () => Exchanging): ParsedKey {
  const always = { after: 0n, before: 0xffffffffffffffffn };
  const blob = certificate(ca, { host: host.blob, principals: ["127.0.0.1"], ...always });
  const sign = (data: Buffer) => {
    const signature = signs.sign(data);
    const name = typeOf(signature);
    exchanging()._protocol._kex.negotiated.serverHostKey = name;
    return signature.subarray(4 + name.length + 4);
  };
  const key = Object.create(ssh2.utils.parseKey(newKey().private)) as ParsedKey;
  return Object.assign(key, { type: algorithm, getPublicSSH: () => blob, sign });
}

/** What commands print on a host that shows a certificate of a trusted authority, before and after keys are exchanged anew. */
async function visit(algorithm: string, host: Authority, signs = host): Promise<string[]> {
  const connection = () => [...server.connections].at(-1) ?? assert.fail("nobody is there");
  const exchanging = () => connection() as unknown as Exchanging;
  const server = await startServer({ hostKey: certified(algorithm, host, signs, exchanging) });
  const dir = folder();
  const knownHostsPath = join(dir.path, "known_hosts");
  writeFileSync(knownHostsPath, trust(ca));
  try {
    const remote = await connect(server.spec({ knownHostsPath }));
    const before = await remote.run(sh`printf before`);
    await new Promise<void>((resolve) => connection().rekey(resolve));
    const after = await remote.run(sh`printf after`);
    assert.equal(server.logins(), 1);
    return [before.stdout, after.stdout];
  } finally {
    await closeAll();
    server.stop();
    dir.remove();
  }
}

for (const [name, host] of authorities)
  test(`a host that shows a certificate and signs as ${name} is let in, also when keys are exchanged anew`, async () => {
    assert.deepEqual(await visit(`${name}-cert-v01@openssh.com`, host), ["before", "after"]);
  });

const weak = rsa("rsa-sha2-512", "sha1");
const rsaHost = rsa("rsa-sha2-512", "sha512");
const lies: readonly [name: string, algorithm: string, host: Authority, signs: Authority, says: RegExp][] = [
  ["with SHA-1", "rsa-sha2-512", sha1, sha1, /Wrong signature type: ssh-rsa/],
  ["with SHA-1 by another name", "rsa-sha2-512", weak, weak, /verification failed/],
  ["in another way than agreed", "rsa-sha2-256", rsaHost, rsaHost, /Wrong signature type: rsa-sha2-512/],
  ["with a key of its own", "rsa-sha2-512", rsaHost, rsa("rsa-sha2-512", "sha512"), /verification failed/],
  ["with another's ed25519 key", "ssh-ed25519", ed25519(), ed25519(), /verification failed/],
  ["for SHA-1 only", "ssh-rsa", sha1, sha1, /no matching host key format/],
];

for (const [name, algorithm, host, signs, says] of lies)
  test(`a host that shows a certificate is refused when it signs ${name}`, async () => {
    const error = await refusal(visit(`${algorithm}-cert-v01@openssh.com`, host, signs), "unreachable");
    assert.match(error.message, says);
  });
