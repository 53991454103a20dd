import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { UserError } from "../../provider/errors";
import { sh } from "../../provider/shell";
import { closeAll, connect } from "../../provider/ssh";
import { hostKeyCheck, preferredAlgorithms } from "../../provider/ssh/host-key";
import { entriesFor, fingerprint, judgeKey, parseKnownHosts } from "../../provider/ssh/known-hosts";
import type { Target } from "../../provider/ssh/target";
import { folder, newKey, startServer, type TestServer } from "./ssh-server";

const good = newKey().public;
const other = newKey().public;
const blob = (line: string) => Buffer.from(line.split(" ")[1] ?? "", "base64");

function hashed(token: string): string {
  const salt = Buffer.from("01234567890123456789");
  return `|1|${salt.toString("base64")}|${createHmac("sha1", salt).update(token).digest("base64")}`;
}

const rsa = `ssh-rsa ${Buffer.concat([Buffer.from([0, 0, 0, 7]), Buffer.from("ssh-rsaX")]).toString("base64")}`;

const verdicts: readonly [name: string, text: string, address: string, port: number, status: string][] = [
  ["plain", `h1 ${good}`, "h1", 22, "known"],
  ["upper case address", `h1 ${good}`, "H1", 22, "known"],
  ["several names", `a,h1,10.0.0.1 ${good}`, "10.0.0.1", 22, "known"],
  ["comment and empty lines", `# h1 ${other}\n\n  h1 ${good} me@there`, "h1", 22, "known"],
  ["Windows line ends", `h1 ${good}\r\n`, "h1", 22, "known"],
  ["port", `[h1]:2222 ${good}`, "h1", 2222, "known"],
  ["IPv6 and port", `[fe80::1]:2222 ${good}`, "fe80::1", 2222, "known"],
  ["other port", `[h1]:2222 ${good}`, "h1", 2223, "unknown"],
  ["port given, file has none: admits", `h1 ${good}`, "h1", 2222, "known"],
  ["port given, file has none: never accuses", `h1 ${other}`, "h1", 2222, "unknown"],
  ["port entry goes before the one without", `h1 ${good}\n[h1]:2222 ${other}`, "h1", 2222, "changed"],
  ["hashed", `${hashed("h1")} ${good}`, "h1", 22, "known"],
  ["hashed with port", `${hashed("[h1]:2222")} ${good}`, "h1", 2222, "known"],
  ["hashed, another host", `${hashed("h2")} ${good}`, "h1", 22, "unknown"],
  ["wildcard", `*.example.org ${good}`, "a.example.org", 22, "known"],
  ["question mark", `h? ${good}`, "h1", 22, "known"],
  ["a dot is only a dot", `h.1 ${good}`, "hx1", 22, "unknown"],
  ["negation", `*.example.org,!b.example.org ${good}`, "b.example.org", 22, "unknown"],
  ["only a negation", `!h2 ${good}`, "h1", 22, "unknown"],
  ["changed", `h1 ${other}`, "h1", 22, "changed"],
  ["another type only counts as changed", `h1 ${rsa}`, "h1", 22, "changed"],
  ["one of several", `h1 ${other}\nh1 ${good}`, "h1", 22, "known"],
  ["revoked", `h1 ${good}\n@revoked * ${good}`, "h1", 22, "revoked"],
  ["revoked with another port", `[h1]:2222 ${good}\n@revoked h1 ${good}`, "h1", 2222, "revoked"],
  ["revoked elsewhere", `h1 ${good}\n@revoked h2 ${good}`, "h1", 22, "known"],
  ["an authority is no key", `@cert-authority * ${good}`, "h1", 22, "unknown"],
  ["unknown marker", `@hello h1 ${good}`, "h1", 22, "unknown"],
  ["damaged key", `h1 ssh-ed25519 AAAA`, "h1", 22, "unknown"],
  ["type does not fit the key", `h1 ssh-rsa ${good.split(" ")[1] ?? ""}`, "h1", 22, "unknown"],
  ["nothing", "", "h1", 22, "unknown"],
];

for (const [name, text, address, port, status] of verdicts)
  test(`known_hosts: ${name}`, () => {
    const entries = entriesFor(parseKnownHosts(text, "f"), address, port);
    assert.equal(judgeKey(entries, blob(good)).status, status);
  });

const orders: readonly [known: string[], certificates: boolean, first: string, count: number][] = [
  [[], false, "ssh-ed25519", 6],
  [["ssh-rsa"], false, "rsa-sha2-512", 6],
  [["ecdsa-sha2-nistp384", "ssh-rsa"], false, "ecdsa-sha2-nistp384", 6],
  [["ssh-dss"], false, "ssh-ed25519", 6],
  [[], true, "ssh-ed25519-cert-v01@openssh.com", 12],
  [["ecdsa-sha2-nistp256"], true, "ecdsa-sha2-nistp256", 12],
];

for (const [known, certificates, first, count] of orders)
  test(`offer for known ${known.join(",") || "nothing"}${certificates ? " with an authority" : ""}`, () => {
    const offer = preferredAlgorithms(known, certificates);
    assert.deepEqual([offer[0], offer.length, new Set(offer).size], [first, count, count]);
    assert.ok(!offer.some((name) => name.startsWith("ssh-rsa")), "SHA-1 signatures are not offered");
  });

const dir = folder();
after(dir.remove);
const file = join(dir.path, "known_hosts");

function target(more: Partial<Target> = {}): Target {
  return {
    label: "m1",
    address: "h1",
    port: 2222,
    user: "root",
    agent: false,
    identityFiles: [],
    hostKeyChecking: "strict",
    knownHosts: [file],
    connectTimeoutMs: 1000,
    ...more,
  };
}

function problem(text: string, more: Partial<Target> = {}): string {
  writeFileSync(file, text);
  return hostKeyCheck(target(more)).problem(blob(good))?.message ?? "";
}

const sha = (line: string) => fingerprint(blob(line));

const messages: readonly [name: string, text: string, more: Partial<Target>, says: readonly string[]][] = [
  ["unknown", "", {}, [sha(good), "not known", `echo '[h1]:2222 ${good}' >> ${file}`, "ssh-keygen -lf"]],
  ["unknown, with an odd name", "", { address: "$(x)" }, [`echo '[$(x)]:2222 ${good}' >> ${file}`]],
  ["unknown, and none kept", "", { knownHosts: ["/dev/null", file] }, [`>> ${file}`]],
  [
    "changed",
    `# head\n[h1]:2222 ${other}\n`,
    {},
    ["changed", sha(good), sha(other), `${file}:2`, `ssh-keygen -R '[h1]:2222' -f ${file}`],
  ],
  ["changed, though accept-new", `[h1]:2222 ${other}\n`, { hostKeyChecking: "accept-new" }, ["changed", `${file}:1`]],
  ["revoked", `[h1]:2222 ${good}\n@revoked * ${good}\n`, {}, ["revoked", `${file}:2`]],
  ["pinned by another key", `[h1]:2222 ${good}\n`, { hostKey: other }, [sha(good), sha(other), "hostKey pins"]],
  ["pinned by another fingerprint", "", { hostKey: sha(other) }, [sha(good), sha(other)]],
  ["pinned, but revoked", `@revoked * ${good}\n`, { hostKey: good }, ["revoked", `${file}:1`]],
];

for (const [name, text, more, says] of messages)
  test(`host key refused: ${name}`, () => {
    const message = problem(text, more);
    for (const part of says) assert.ok(message.includes(part), `${part} is not in ${message}`);
  });

const accepted: readonly [name: string, text: string, more: Partial<Target>][] = [
  ["known", `[h1]:2222 ${good}\n`, {}],
  ["pinned key", "", { hostKey: good }],
  ["pinned key with a comment", "", { hostKey: `${good} me@there` }],
  ["pinned fingerprint", "", { hostKey: sha(good) }],
  ["pinned, though the file has another", `[h1]:2222 ${other}\n`, { hostKey: sha(good) }],
  ["new and accept-new", "", { hostKeyChecking: "accept-new" }],
];

for (const [name, text, more] of accepted)
  test(`host key accepted: ${name}`, () => {
    assert.equal(problem(text, more), "");
  });

test("accept-new writes the key only when it is proven, once, on a line of its own", () => {
  writeFileSync(file, "# no newline at the end");
  const check = hostKeyCheck(target({ hostKeyChecking: "accept-new" }));
  check.problem(blob(good));
  assert.equal(readFileSync(file, "utf8"), "# no newline at the end");
  check.proven(blob(good));
  check.proven(blob(good));
  assert.equal(readFileSync(file, "utf8"), `# no newline at the end\n[h1]:2222 ${good}\n`);
  assert.equal(hostKeyCheck(target()).problem(blob(good)), undefined);
});

test("accept-new makes a missing known_hosts, for the owner only", () => {
  const path = join(dir.path, "new", "known_hosts");
  const check = hostKeyCheck(target({ hostKeyChecking: "accept-new", knownHosts: [path] }));
  check.problem(blob(good));
  check.proven(blob(good));
  assert.equal(readFileSync(path, "utf8"), `[h1]:2222 ${good}\n`);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

let host: TestServer;
before(async () => {
  host = await startServer();
});
after(() => host.stop());
afterEach(closeAll);

test("accept-new writes a key once, though keys are exchanged anew", async () => {
  const knownHostsPath = join(dir.path, "once");
  const remote = await connect(host.spec({ hostKeyChecking: "accept-new", knownHostsPath }));
  const [connection] = host.connections;
  await new Promise<void>((resolve) => connection?.rekey(resolve));
  await remote.run(sh`:`);
  assert.equal(readFileSync(knownHostsPath, "utf8"), `[127.0.0.1]:${host.port} ${host.host.public}\n`);
});

test("a file of known hosts that is not there is named", async () => {
  const knownHostsPath = join(dir.path, "none");
  await assert.rejects(connect(host.spec({ knownHostsPath })), ({ message }: Error) => {
    assert.match(message, /is not known, as there is no file .*none: SHA256:/);
    return true;
  });
});

const unusableFiles: readonly [name: string, path: () => string, says: RegExp][] = [
  ["read", () => dir.path, /known host keys cannot be read: EISDIR/],
  ["written", () => join(file, "known_hosts"), /a new host key cannot be written: EEXIST/],
];

for (const [name, path, says] of unusableFiles)
  test(`a known_hosts that cannot be ${name} is named, and nobody logs in`, async () => {
    const tried = host.tried.length;
    const knownHostsPath = path();
    const work = connect(host.spec({ hostKeyChecking: "accept-new", knownHostsPath }));
    await assert.rejects(work, (error) => {
      assert.ok(error instanceof UserError);
      assert.match(error.message, says);
      return error.message.startsWith(`${knownHostsPath}: `);
    });
    assert.equal(host.tried.length, tried);
  });
