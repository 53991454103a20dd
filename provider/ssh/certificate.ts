import { createPublicKey, verify, type JsonWebKey, type KeyObject } from "node:crypto";
import { textOf } from "../errors";
import { fingerprint, keyType, type HostEntries } from "./known-hosts";

/** Host certificates that are asked for. That with SHA-1 signatures, ssh-rsa-cert-v01@openssh.com, is not. */
export const CERTIFICATE_ALGORITHMS = [
  "ssh-ed25519-cert-v01@openssh.com",
  "ecdsa-sha2-nistp256-cert-v01@openssh.com",
  "ecdsa-sha2-nistp384-cert-v01@openssh.com",
  "ecdsa-sha2-nistp521-cert-v01@openssh.com",
  "rsa-sha2-512-cert-v01@openssh.com",
  "rsa-sha2-256-cert-v01@openssh.com",
];

const CERT_SUFFIX = "-cert-v01@openssh.com";
const HOST_CERTIFICATE = 2;
const FOREVER = 0xffffffffffffffffn;

interface Certificate {
  /** The host's own public key, as a plain blob. */
  key: Buffer;
  kind: number;
  principals: readonly string[];
  validAfter: bigint;
  validBefore: bigint;
  criticalOptions: Buffer;
  authority: Buffer;
  signed: Buffer;
  signature: Buffer;
}

const CURVES: Readonly<Record<string, { crv: string; bytes: number; hash: string }>> = {
  nistp256: { crv: "P-256", bytes: 32, hash: "sha256" },
  nistp384: { crv: "P-384", bytes: 48, hash: "sha384" },
  nistp521: { crv: "P-521", bytes: 66, hash: "sha512" },
};

const RSA_HASHES: Readonly<Record<string, string>> = { "rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512" };

export function isCertificate(key: Buffer): boolean {
  return keyType(key).endsWith(CERT_SUFFIX);
}

/** What a host answers to an algorithm for certificates: a certificate of this type, signatures of this name. */
export function certifiedNames(algorithm: string): { type: string; signature: string } | undefined {
  if (!algorithm.endsWith(CERT_SUFFIX)) return undefined;
  const signature = algorithm.slice(0, -CERT_SUFFIX.length);
  return { type: `${signature in RSA_HASHES ? "ssh-rsa" : signature}${CERT_SUFFIX}`, signature };
}

export function sshString(value: Buffer | string): Buffer {
  const body = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

function reader(blob: Buffer) {
  let at = 0;
  const take = (length: number) => {
    if (at + length > blob.length) throw new Error("it ends too early");
    at += length;
    return blob.subarray(at - length, at);
  };
  const string = () => take(take(4).readUInt32BE());
  return {
    string,
    uint32: () => take(4).readUInt32BE(),
    uint64: () => take(8).readBigUInt64BE(),
    position: () => at,
    done: () => at === blob.length,
  };
}

function allStrings(blob: Buffer): string[] {
  const r = reader(blob);
  const out: string[] = [];
  while (!r.done()) out.push(r.string().toString("utf8"));
  return out;
}

/** How many fields the public key proper has, between nonce and serial. */
const KEY_FIELDS: Readonly<Record<string, number>> = { "ssh-ed25519": 1, "ssh-rsa": 2 };

export function parseCertificate(blob: Buffer): Certificate {
  const r = reader(blob);
  const type = r.string().toString("latin1").slice(0, -CERT_SUFFIX.length);
  r.string(); // nonce
  const fields = Array.from({ length: KEY_FIELDS[type] ?? 2 }, () => sshString(r.string()));
  r.uint64(); // serial
  const kind = r.uint32();
  r.string(); // key id
  const principals = allStrings(r.string());
  const validAfter = r.uint64();
  const validBefore = r.uint64();
  const criticalOptions = r.string();
  r.string(); // extensions
  r.string(); // reserved
  const authority = r.string();
  const signed = blob.subarray(0, r.position());
  const signature = r.string();
  if (!r.done()) throw new Error("something follows its signature");
  const key = Buffer.concat([sshString(type), ...fields]);
  return { key, kind, principals, validAfter, validBefore, criticalOptions, authority, signed, signature };
}

/** The host's public key inside a certificate. */
export function certifiedKey(blob: Buffer): Buffer {
  return parseCertificate(blob).key;
}

function unsigned(mpint: Buffer): Buffer {
  return mpint[0] === 0 ? mpint.subarray(1) : mpint;
}

function jwk(key: Buffer): JsonWebKey | undefined {
  const r = reader(key);
  const type = r.string().toString("latin1");
  if (type === "ssh-ed25519") return { kty: "OKP", crv: "Ed25519", x: r.string().toString("base64url") };
  if (type === "ssh-rsa") {
    const e = unsigned(r.string()).toString("base64url");
    return { kty: "RSA", e, n: unsigned(r.string()).toString("base64url") };
  }
  const curve = CURVES[r.string().toString("latin1")];
  const point = r.string();
  if (!curve || point[0] !== 4 || point.length !== 1 + 2 * curve.bytes) return undefined;
  const half = (from: number) => point.subarray(from, from + curve.bytes).toString("base64url");
  return { kty: "EC", crv: curve.crv, x: half(1), y: half(1 + curve.bytes) };
}

function padded(mpint: Buffer, bytes: number): Buffer {
  const value = unsigned(mpint);
  return Buffer.concat([Buffer.alloc(Math.max(0, bytes - value.length)), value]);
}

function verifyWith(key: KeyObject, type: string, data: Buffer, signature: Buffer): boolean {
  const r = reader(signature);
  const algorithm = r.string().toString("latin1");
  const body = r.string();
  if (type === "ssh-ed25519") return algorithm === type && verify(null, data, key, body);
  if (type === "ssh-rsa") {
    const hash = RSA_HASHES[algorithm];
    return hash !== undefined && verify(hash, data, key, body);
  }
  const curve = CURVES[type.replace("ecdsa-sha2-", "")];
  if (!curve || algorithm !== type) return false;
  const parts = reader(body);
  const raw = Buffer.concat([padded(parts.string(), curve.bytes), padded(parts.string(), curve.bytes)]);
  return verify(curve.hash, data, { key, dsaEncoding: "ieee-p1363" }, raw);
}

/** Whether the signature block (as SSH writes it) over the data was made with this public key. */
export function signedBy(authority: Buffer, data: Buffer, signature: Buffer): boolean {
  const type = keyType(authority);
  if (type !== "ssh-ed25519" && type !== "ssh-rsa" && !type.startsWith("ecdsa-sha2-")) return false;
  const key = jwk(authority);
  return key !== undefined && verifyWith(createPublicKey({ key, format: "jwk" }), type, data, signature);
}

const day = (seconds: bigint) => (seconds === FOREVER ? "for ever" : new Date(Number(seconds) * 1000).toISOString());

function firstProblem(cert: Certificate, host: HostEntries, address: string, now: Date): string | undefined {
  const seconds = BigInt(Math.floor(now.getTime() / 1000));
  const same = (key: Buffer) => host.revoked.find((entry) => entry.key.equals(key));
  const revoked = same(cert.key) ?? same(cert.authority);
  const name = address.toLowerCase();
  const trusted = host.authorities.some((entry) => entry.key.equals(cert.authority));
  const rules: readonly [boolean, () => string][] = [
    [revoked !== undefined, () => `revoked at ${revoked?.file ?? ""}:${revoked?.line ?? 0}`],
    [!trusted, () => `no @cert-authority line for it has the key ${fingerprint(cert.authority)}`],
    [cert.kind !== HOST_CERTIFICATE, () => "it is a user certificate"],
    [
      !cert.principals.some((p) => p.toLowerCase() === name),
      () => `it is for ${cert.principals.join(", ") || "nobody by name"}, not for ${address}`,
    ],
    [seconds < cert.validAfter, () => `it is valid only from ${day(cert.validAfter)} (is the clock right?)`],
    [seconds >= cert.validBefore, () => `it was valid until ${day(cert.validBefore)} (is the clock right?)`],
    [cert.criticalOptions.length > 0, () => "it carries a critical option, and none is defined for hosts"],
    [!signedBy(cert.authority, cert.signed, cert.signature), () => "its signature is wrong"],
  ];
  return rules.find(([bad]) => bad)?.[1]();
}

/** Why a host certificate must not be trusted for this address; undefined when it is good. */
export function certificateProblem(blob: Buffer, host: HostEntries, address: string, now: Date): string | undefined {
  try {
    return firstProblem(parseCertificate(blob), host, address, now);
  } catch (error) {
    return `it cannot be read: ${textOf(error)}`;
  }
}
