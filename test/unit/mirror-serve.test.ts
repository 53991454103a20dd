import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { ensureIdentity, makeCa, makeServerCert } from "../../lab/mirror/ca.js";
import { type Range, fileServer, parseRange } from "../../lab/mirror/files.js";
import { listenNear } from "../../lab/mirror/serve.js";

const saved = { ...process.env };
const CONTENT = "0123456789";
let dir = "";
let server: http.Server;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-mirror-"));
  process.env["KUBEXM_CACHE"] = join(dir, "cache");
  const [file, empty] = [join(dir, "file"), join(dir, "empty")];
  await writeFile(file, CONTENT);
  await writeFile(empty, "");
  const known: Record<string, { file: string } | "pending"> = {
    "dl.example/v1 +x": { file },
    "dl.example/empty": { file: empty },
    "dl.example/gone": { file: join(dir, "gone") },
    "dl.example/later": "pending",
  };
  server = http.createServer(fileServer((path) => known[path]));
  await listenNear(server, "127.0.0.1", 0);
});

after(async () => {
  server.closeAllConnections();
  server.close();
  process.env = saved;
  await rm(dir, { recursive: true, force: true });
});

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port, path, headers, method, agent: false }, (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        reject,
      );
    });
    request.once("error", reject).end();
  });
}

const FILE = "/dl.example/v1%20+x";

test("a range header means the bytes that it names", () => {
  const cases: [string | undefined, Range | "bad" | undefined][] = [
    [undefined, undefined],
    ["bytes=0-", { first: 0, last: 9 }],
    ["bytes=4-", { first: 4, last: 9 }],
    ["bytes=2-3", { first: 2, last: 3 }],
    ["bytes=8-99", { first: 8, last: 9 }],
    ["bytes=-3", { first: 7, last: 9 }],
    ["bytes=-99", { first: 0, last: 9 }],
    ["bytes=10-", "bad"],
    ["bytes=-0", "bad"],
    ["bytes=5-2", "bad"],
    ["bytes=0-1,4-5", undefined],
    ["lines=1-2", undefined],
    ["bytes=-", undefined],
  ];
  for (const [header, want] of cases) assert.deepEqual(parseRange(header, CONTENT.length), want, header);
  assert.equal(parseRange("bytes=0-", 0), "bad");
});

test("files are served whole, by head only, and by a query that does not matter", async () => {
  const whole = await ask(FILE);
  assert.deepEqual([whole.status, whole.body, whole.headers["accept-ranges"]], [200, CONTENT, "bytes"]);
  const head = await ask(FILE, {}, "HEAD");
  assert.deepEqual([head.status, head.body, head.headers["content-length"]], [200, "", "10"]);
  assert.equal((await ask(`${FILE}?x=1`)).body, CONTENT);
  const empty = await ask("/dl.example/empty");
  assert.deepEqual([empty.status, empty.body, empty.headers["content-length"]], [200, "", "0"]);
});

test("an interrupted download is taken up, unless the file has changed", async () => {
  const etag = (await ask(FILE)).headers.etag ?? "";
  assert.match(etag, /^"\w+-\w+"$/);
  const rest = await ask(FILE, { range: "bytes=6-", "if-range": etag });
  assert.deepEqual([rest.status, rest.body, rest.headers["content-range"]], [206, "6789", "bytes 6-9/10"]);
  const changed = await ask(FILE, { range: "bytes=6-", "if-range": '"other"' });
  assert.deepEqual([changed.status, changed.body], [200, CONTENT]);
  assert.equal((await ask(FILE, { "if-none-match": etag })).status, 304);
  const beyond = await ask(FILE, { range: "bytes=10-" });
  assert.deepEqual([beyond.status, beyond.headers["content-range"]], [416, "bytes */10"]);
});

test("what cannot be served says why", async () => {
  const cases: [path: string, method: string, status: number][] = [
    ["/dl.example/none", "GET", 404],
    ["/../../etc/passwd", "GET", 404],
    ["/dl.example/later", "GET", 503],
    [FILE, "PUT", 405],
    ["/%zz", "GET", 400],
    ["/dl.example/gone", "GET", 500],
  ];
  for (const [path, method, status] of cases) assert.equal((await ask(path, {}, method)).status, status, path);
  assert.equal((await ask("/dl.example/later")).headers["retry-after"], "5");
});

test("a taken port is left to its owner, a foreign address is refused", async () => {
  const taken = (server.address() as AddressInfo).port;
  const second = http.createServer();
  const port = await listenNear(second, "127.0.0.1", taken);
  second.close();
  assert.notEqual(port, taken);
  await assert.rejects(listenNear(http.createServer(), "192.0.2.1", 0), {
    name: "UserError",
    message: /192\.0\.2\.1: it is not an address of this machine/,
  });
});

test("a server's certificate is by the authority, for the names given and no other", () => {
  const ca = makeCa();
  const authority = new X509Certificate(ca.cert);
  const cert = new X509Certificate(makeServerCert(ca, ["mirror.lab", "127.0.0.1", "fd00::1"]).cert);
  assert.equal(cert.verify(authority.publicKey), true);
  assert.equal(cert.checkIssued(authority), true);
  assert.deepEqual([authority.ca, cert.ca], [true, false]);
  assert.equal(cert.checkHost("mirror.lab"), "mirror.lab");
  assert.deepEqual([cert.checkIP("127.0.0.1"), cert.checkIP("fd00::1")], ["127.0.0.1", "fd00::1"]);
  assert.deepEqual([cert.checkHost("other.lab"), cert.checkIP("127.0.0.2")], [undefined, undefined]);
  assert.equal(cert.verify(new X509Certificate(makeCa().cert).publicKey), false);
});

test("the authority is made once, certificates once for each set of names, and TLS works with them", async () => {
  const identity = await ensureIdentity(["127.0.0.1", "localhost"]);
  const again = await ensureIdentity(["localhost", "127.0.0.1", "localhost"]);
  const other = await ensureIdentity(["127.0.0.1", "mirror.lab"]);
  assert.deepEqual(again, identity);
  assert.equal(other.caPath, identity.caPath);
  assert.notEqual(other.cert, identity.cert);

  const tls = https.createServer({ cert: identity.cert, key: identity.key }, (_, response) => response.end("ok"));
  const port = await listenNear(tls, "127.0.0.1", 0);
  const get = (ca: string) =>
    new Promise<string>((resolve, reject) => {
      https
        .get({ host: "127.0.0.1", port, ca, agent: false }, (response) => void text(response).then(resolve, reject))
        .once("error", reject);
    });
  try {
    assert.equal(await get(await readFile(identity.caPath, "utf8")), "ok");
    await assert.rejects(get(makeCa().cert), /certificate|signature/);
  } finally {
    tls.closeAllConnections();
    tls.close();
  }
});
