import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { md, pki } from "node-forge";
import { once } from "../../toolchain/cache.js";

export interface KeyPair {
  cert: string;
  key: string;
}

const DAY_MS = 24 * 3600 * 1000;
const DAYS = 3650;
const ISSUER = [{ name: "commonName", value: "kubexm lab mirror CA" }];

function certificate(subject: pki.CertificateField[], extensions: object[], issuer?: KeyPair): KeyPair {
  // The native generator: the one written in JavaScript takes seconds.
  const key = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const cert = pki.createCertificate();
  cert.publicKey = pki.publicKeyFromPem(key.publicKey);
  // Positive, whatever the first byte is.
  cert.serialNumber = `01${randomBytes(15).toString("hex")}`;
  // A host whose clock is a little behind must not find a certificate of the future.
  cert.validity.notBefore = new Date(Date.now() - DAY_MS);
  cert.validity.notAfter = new Date(Date.now() + DAYS * DAY_MS);
  cert.setSubject(subject);
  cert.setIssuer(issuer ? pki.certificateFromPem(issuer.cert).subject.attributes : subject);
  cert.setExtensions(extensions);
  cert.sign(pki.privateKeyFromPem(issuer?.key ?? key.privateKey), md.sha256.create());
  return { cert: pki.certificateToPem(cert), key: key.privateKey };
}

/** A new authority of its own. */
export function makeCa(): KeyPair {
  return certificate(ISSUER, [
    { name: "basicConstraints", cA: true, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    { name: "subjectKeyIdentifier" },
  ]);
}

/** A server's certificate for these names and addresses. */
export function makeServerCert(ca: KeyPair, names: readonly string[]): KeyPair {
  const altNames = names.map((name) => (isIP(name) ? { type: 7, ip: name } : { type: 2, value: name }));
  const extensions = [
    { name: "basicConstraints", cA: false },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: true },
    { name: "subjectAltName", altNames },
  ];
  return certificate([{ name: "commonName", value: "kubexm lab mirror" }], extensions, ca);
}

export interface Identity extends KeyPair {
  caPath: string;
  certPath: string;
  keyPath: string;
}

async function kept(cacheKey: string, make: () => KeyPair): Promise<KeyPair & { dir: string }> {
  const dir = await once(cacheKey, async (to) => {
    const { cert, key } = make();
    await writeFile(join(to, "cert.pem"), cert);
    await writeFile(join(to, "key.pem"), key, { mode: 0o600 });
  });
  const read = (name: string) => readFile(join(dir, name), "utf8");
  return { dir, cert: await read("cert.pem"), key: await read("key.pem") };
}

/** The certificate of a mirror that is known by these names, by the authority of this machine's cache. */
export async function ensureIdentity(names: readonly string[]): Promise<Identity> {
  const sorted = [...new Set(names)].sort();
  const ca = await kept("mirror-ca/ca", makeCa);
  const id = createHash("sha256")
    .update(ca.cert + sorted.join())
    .digest("hex")
    .slice(0, 12);
  const { dir, cert, key } = await kept(`mirror-ca/server-${id}`, () => makeServerCert(ca, sorted));
  return {
    cert,
    key,
    caPath: join(ca.dir, "cert.pem"),
    certPath: join(dir, "cert.pem"),
    keyPath: join(dir, "key.pem"),
  };
}
