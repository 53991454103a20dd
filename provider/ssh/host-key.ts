import { appendFileSync, closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readSync } from "node:fs";
import { dirname } from "node:path";
import { UserError, type RemoteError, textOf } from "../errors";
import { quote } from "../shell";
import { CERTIFICATE_ALGORITHMS, certificateProblem, isCertificate } from "./certificate";
import { endpoint, failure } from "./failure";
import {
  entriesFor,
  fingerprint,
  hostToken,
  judgeKey,
  keyType,
  parseKnownHosts,
  type HostEntries,
  type KnownHost,
} from "./known-hosts";
import { NOWHERE } from "./ssh-config";
import type { Target } from "./target";

/** Key types by preference, each with the signature algorithms offered for it. SHA-1 RSA signatures are not offered. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"],
};

/** The check of one host's key: what to offer, whether a key is good, and what to write down once it is proven. */
export interface HostKeyCheck {
  algorithms: readonly string[];
  /** undefined: good. */
  problem: (key: Buffer) => RemoteError | undefined;
  /** Called when the host has proven that it holds the key. */
  proven: (key: Buffer) => void;
}

const parsed = new Map<string, { text: string; entries: readonly KnownHost[] }>();

/** A file of known keys that cannot be used is told by its name: to pass over it would pass over what it revokes. */
function withFile<T>(file: string, trouble: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw new UserError(`${file}: ${trouble}: ${textOf(error)}`, { cause: error });
  }
}

/** To read a file is nothing, to take it apart is not: that is done once for all hosts. */
function knownHostsIn(file: string): readonly KnownHost[] {
  if (!existsSync(file)) return [];
  const text = withFile(file, "known host keys cannot be read", () => readFileSync(file, "utf8"));
  const known = parsed.get(file);
  if (known?.text === text) return known.entries;
  const entries = parseKnownHosts(text, file);
  parsed.set(file, { text, entries });
  return entries;
}

function pinned(pin: string): { fingerprint: string; type?: string } {
  const [first = "", base64] = pin.trim().split(/\s+/);
  if (base64 === undefined) return { fingerprint: first.replace(/=+$/, "") };
  return { fingerprint: fingerprint(Buffer.from(base64, "base64")), type: first };
}

/** Known types first: a host with several keys must show the one we can check. */
export function preferredAlgorithms(known: readonly string[], certificates: boolean): string[] {
  const types = Object.keys(ALGORITHMS);
  const order = [...types.filter((type) => known.includes(type)), ...types.filter((type) => !known.includes(type))];
  const plain = order.flatMap((type) => ALGORITHMS[type] ?? []);
  const first = known.length ? (ALGORITHMS[order[0] ?? ""] ?? []).length : 0;
  return certificates ? [...plain.slice(0, first), ...CERTIFICATE_ALGORITHMS, ...plain.slice(first)] : plain;
}

function checkOnHost(key: Buffer): string {
  const name = { "ssh-ed25519": "ed25519", "ssh-rsa": "rsa" }[keyType(key)] ?? "ecdsa";
  return `\`ssh-keygen -lf /etc/ssh/ssh_host_${name}_key.pub\` on the host's console`;
}

function pinProblem(target: Target, key: Buffer, pin: string): RemoteError | undefined {
  const want = pinned(pin);
  const found = fingerprint(key);
  if (found === want.fingerprint) return undefined;
  return failure(
    target.label,
    "hostkey",
    `the host key of ${endpoint(target)} is ${found} (${keyType(key)}), but hostKey pins ${want.fingerprint}`,
    {
      advice: `nothing was sent. Compare with ${checkOnHost(key)}; only if that shows the new fingerprint, set hostKey to \`${keyType(key)} ${key.toString("base64")}\``,
    },
  );
}

function revoked(target: Target, key: Buffer, where: string): RemoteError {
  return failure(
    target.label,
    "hostkey",
    `the host key of ${endpoint(target)}, ${fingerprint(key)}, is revoked at ${where}`,
    { advice: "nothing was sent. Give the host a new key, or remove the @revoked line if it stands there by mistake" },
  );
}

function changed(target: Target, key: Buffer, host: HostEntries): RemoteError {
  const token = hostToken(target.address, target.port);
  const where = host.keys.map((e) => `${e.file}:${e.line} (${e.type} ${fingerprint(e.key)})`).join(", ");
  const files = [...new Set(host.keys.map((e) => e.file))];
  const remove = files.map((file) => `ssh-keygen -R ${quote(token)} -f ${quote(file)}`).join(" && ");
  return failure(
    target.label,
    "hostkey",
    `the host key of ${endpoint(target)} has changed: it is ${fingerprint(key)} (${keyType(key)}), known is ${where}`,
    {
      advice: `nothing was sent: someone may stand between, or the host was installed anew. Compare with ${checkOnHost(key)}; only if it is the host's own, run: ${remove} && ${addCommand(target, key)}`,
    },
  );
}

function entryLine(target: Target, key: Buffer): string {
  return `${hostToken(target.address, target.port)} ${keyType(key)} ${key.toString("base64")}`;
}

function addCommand(target: Target, key: Buffer): string {
  const file = target.knownHosts.find((path) => path !== NOWHERE) ?? NOWHERE;
  return `echo ${quote(entryLine(target, key))} >> ${quote(file)}`;
}

function unknown(target: Target, key: Buffer): RemoteError {
  const [file = NOWHERE, ...others] = target.knownHosts;
  const missing = others.length === 0 && !existsSync(file) ? `, as there is no file ${file}` : "";
  return failure(
    target.label,
    "hostkey",
    `the host key of ${endpoint(target)} is not known${missing}: ${fingerprint(key)} (${keyType(key)})`,
    {
      advice: `nothing was sent. Compare with ${checkOnHost(key)}; if it is the same, run: ${addCommand(target, key)} (or set hostKey, or hostKeyChecking: accept-new)`,
    },
  );
}

function certificate(target: Target, key: Buffer, host: HostEntries, now: Date): RemoteError | undefined {
  const problem = certificateProblem(key, host, target.address, now);
  if (problem === undefined) return undefined;
  return failure(target.label, "hostkey", `the host certificate of ${endpoint(target)} is refused: ${problem}`, {
    advice:
      "nothing was sent. Have the host's certificate signed anew by an authority of your known_hosts, for the address used here",
  });
}

/** One write of one line, so that several processes can add at once. */
function append(file: string, line: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  appendFileSync(file, `${endsOpen(file) ? "\n" : ""}${line}\n`, { mode: 0o600, flag: "a" });
}

function endsOpen(file: string): boolean {
  if (!existsSync(file)) return false;
  const fd = openSync(file, "r");
  try {
    const { size } = fstatSync(fd);
    const last = Buffer.alloc(1);
    return size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last.toString("latin1") !== "\n";
  } finally {
    closeSync(fd);
  }
}

function judge(target: Target, host: HostEntries, key: Buffer): { problem?: RemoteError; accepted?: boolean } {
  const verdict = judgeKey(host, key);
  if (verdict.status === "known") return {};
  if (verdict.status === "changed") return { problem: changed(target, key, host) };
  if (verdict.status === "revoked")
    return { problem: revoked(target, key, `${verdict.entry.file}:${verdict.entry.line}`) };
  return target.hostKeyChecking === "accept-new" ? { accepted: true } : { problem: unknown(target, key) };
}

export function hostKeyCheck(target: Target, now = () => new Date()): HostKeyCheck {
  const host = entriesFor(target.knownHosts.flatMap(knownHostsIn), target.address, target.port);
  const pin = target.hostKey;
  if (pin !== undefined) {
    const type = pinned(pin).type;
    return {
      algorithms: preferredAlgorithms(type ? [type] : [], false),
      problem: (key) => {
        const bad = host.revoked.find((entry) => entry.key.equals(key));
        return bad ? revoked(target, key, `${bad.file}:${bad.line}`) : pinProblem(target, key, pin);
      },
      proven: () => undefined,
    };
  }
  const known = (host.keys.length ? host.keys : host.portless).map((entry) => entry.type);
  let accepted = false;
  return {
    algorithms: preferredAlgorithms(known, host.authorities.length > 0),
    problem: (key) => {
      if (isCertificate(key)) return certificate(target, key, host, now());
      const result = judge(target, host, key);
      accepted = result.accepted ?? false;
      return result.problem;
    },
    proven: (key) => {
      const file = target.knownHosts[0];
      if (accepted && file)
        withFile(file, "a new host key cannot be written", () => append(file, entryLine(target, key)));
      accepted = false;
    },
  };
}
