import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, afterEach, before, test } from "node:test";
import { type Download, download } from "../../toolchain/download.js";
import { getText, proxyFor } from "../../toolchain/http.js";
import { answers, bytes, closeServers, lastServer, page, serve, status } from "../harness/web.js";

const BODY = "what was asked for";
const SUM = createHash("sha256").update(BODY).digest("hex");
const PROXIES = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
const saved = { ...process.env };
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubexm-download-"));
  for (const name of PROXIES) Reflect.deleteProperty(process.env, name);
});

afterEach(() => {
  for (const name of PROXIES) Reflect.deleteProperty(process.env, name);
  closeServers();
});

after(async () => {
  process.env = saved;
  await rm(folder, { recursive: true, force: true });
});

const good: RequestListener = (_, response) => void response.end(BODY);
const other: RequestListener = (_, response) => void response.end("something else");
const broken = bytes(Buffer.from(BODY), 4);

async function fetched(what: Partial<Download> & Pick<Download, "urls">): Promise<string> {
  const to = join(folder, "file");
  await rm(to, { force: true });
  await download({ sha256: SUM, to, ...what });
  return readFile(to, "utf8");
}

const left = async () => (await readdir(folder)).filter((name) => name !== "file");

for (const [what, list, asked] of [
  ["a good answer", [good], 1],
  ["a server that is busy at first", [status(503), status(429), good], 3],
  ["a connection that breaks", [broken, good], 2],
  ["a redirect", [status(302, { location: "/elsewhere" }), good], 2],
] as const)
  test(`the file arrives: ${what}`, async () => {
    const server = answers(...list);
    assert.equal(await fetched({ urls: [`${await serve(server.listener)}/f`] }), BODY);
    assert.equal(server.asked.length, asked);
    assert.deepEqual(await left(), []);
  });

for (const [what, list, attempts, asked, message] of [
  [
    "another checksum is refused and asked for once more",
    [other],
    4,
    2,
    /sha256 is [0-9a-f]{64}, expected .*; refused/,
  ],
  ["a web page is not asked for again", [page], 4, 1, /a web page came, not the file/],
  ["a missing file is not asked for again", [status(404)], 4, 1, /HTTP 404 Not Found/],
  ["a server that stays broken ends the tries", [status(500)], 2, 2, /HTTP 500/],
  ["redirects without end", [status(302, { location: "/" })], 1, 10, /more than 10 redirects/],
] as const)
  test(`the file does not arrive: ${what}`, async () => {
    const server = answers(...list);
    const url = `${await serve(server.listener)}/f`;
    await assert.rejects(fetched({ urls: [url], attempts }), (error: Error) => {
      assert.match(error.message, message);
      assert.match(error.message, /^cannot download file:\n {2}http:.*\n {2}what to do: /);
      return error.name === "UserError";
    });
    assert.equal(server.asked.length, asked);
    assert.deepEqual(await readdir(folder), []);
  });

/** Fulfilled when so much of a file is on the disk. */
async function grown(file: string, size: number): Promise<void> {
  while ((await stat(file).catch(() => undefined))?.size !== size) await sleep(5);
}

test("after a break the download goes on where it was", async () => {
  const partial = join(folder, "partial");
  const cut = (after: number) => bytes(Buffer.from(BODY), after, (size) => grown(partial, size));
  const server = answers(cut(4), cut(3), bytes(Buffer.from(BODY)));
  const seen: (number | undefined)[][] = [];
  const urls = [await serve(server.listener)];
  assert.equal(await fetched({ urls, partial, onProgress: (...bytes) => seen.push(bytes) }), BODY);
  assert.deepEqual(
    server.asked.map(({ headers }) => headers.range),
    [undefined, "bytes=4-", "bytes=7-"],
  );
  assert.deepEqual(seen.at(-1), [BODY.length, BODY.length]);
});

/** What a download finds that an earlier one left, what it asks for, and what it leaves. */
for (const [what, begun, list, ranges] of [
  ["its beginning", BODY.slice(0, 5), [bytes(Buffer.from(BODY))], ["bytes=5-"]],
  ["all of it", BODY, [good], []],
  ["its beginning, from a server that knows no ranges", BODY.slice(0, 5), [good], ["bytes=5-"]],
  ["something else", "other", [bytes(Buffer.from(BODY))], ["bytes=5-", undefined]],
  ["more than it", `${BODY}more`, [bytes(Buffer.from(BODY))], [`bytes=${BODY.length + 4}-`, undefined]],
] as const)
  test(`a file is completed, left by a killed download: ${what}`, async () => {
    const partial = join(folder, "partial");
    await writeFile(partial, begun);
    const server = answers(...list);
    assert.equal(await fetched({ urls: [await serve(server.listener)], partial }), BODY);
    assert.deepEqual(
      server.asked.map(({ headers }) => headers.range),
      ranges,
    );
    assert.deepEqual(await left(), []);
  });

test("what has come so far is kept for the next download, but not what has another checksum", async () => {
  const partial = join(folder, "partial");
  const breaks = bytes(Buffer.from(BODY), 4, (size) => grown(partial, size));
  const cut = fetched({ urls: [await serve(breaks)], partial, attempts: 1 });
  await assert.rejects(cut, /cannot download file:/);
  assert.equal(await readFile(partial, "utf8"), BODY.slice(0, 4));
  await assert.rejects(fetched({ urls: [await serve(other)], partial }), /refused/);
  assert.deepEqual(await readdir(folder), []);
});

test("a file that ends early without saying its length is refused", async () => {
  const server = answers((_, response) => void response.end(BODY.slice(0, 4)), good);
  const seen: string[] = [];
  const urls = [await serve(server.listener)];
  assert.equal(await fetched({ urls, onFailure: (url, reason) => seen.push(`${url} ${reason}`) }), BODY);
  assert.equal(seen.length, 1);
  assert.match(seen.join(), /^http:\S+ its sha256 is .*; refused$/);
});

test("a server that falls silent in the middle is left for the next", async () => {
  const silent: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": BODY.length });
    response.write(BODY.slice(0, 6));
  };
  const partial = join(folder, "partial");
  const next = answers(bytes(Buffer.from(BODY)));
  const seen: string[] = [];
  const urls = [await serve(silent), await serve(next.listener)];
  const onFailure = (_: string, reason: string) => seen.push(reason);
  assert.equal(await fetched({ urls, partial, idleTimeoutMs: 50, onFailure }), BODY);
  assert.match(seen.join(), /^nothing more came from 127\.0\.0\.1:\d+ for 0\.05 s$/);
  assert.equal(next.asked.length, 1);
});

test("a server that never answers is asked twice, then given up", async () => {
  const silent = answers(() => undefined);
  await assert.rejects(
    fetched({ urls: [await serve(silent.listener)], answerTimeoutMs: 50 }),
    /no answer from 127\.0\.0\.1:\d+ within 0\.05 s/,
  );
  assert.equal(silent.asked.length, 2);
});

test("one that kept us waiting comes last from then on", async () => {
  const silent = answers(() => undefined);
  const urls = [await serve(silent.listener), await serve(good)];
  for (let run = 0; run < 2; run++) assert.equal(await fetched({ urls, answerTimeoutMs: 50 }), BODY);
  assert.equal(silent.asked.length, 1);
});

test("what is wrong with the disk here is not blamed on a server", async () => {
  const server = answers(good);
  const partial = join(folder, "a-folder-is-in-the-way", "partial");
  await mkdir(partial, { recursive: true });
  await assert.rejects(fetched({ urls: [await serve(server.listener)], partial }), (error: Error) => {
    assert.match(
      error.message,
      /^cannot keep file in .*a-folder-is-in-the-way: EISDIR.*; free some space there, or set KUBEXM_CACHE/,
    );
    return error.name === "UserError";
  });
  await rm(join(folder, "a-folder-is-in-the-way"), { recursive: true });
});

test("the next address is taken when one fails", async () => {
  const first = answers(other);
  const urls = [`${await serve(first.listener)}/f`, `${await serve(good)}/f`];
  assert.equal(await fetched({ urls }), BODY);
  assert.equal(first.asked.length, 1);
});

test("progress counts bytes against the length", async () => {
  const seen: [number, number | undefined][] = [];
  const url = await serve((_, response) => void response.writeHead(200, { "content-length": BODY.length }).end(BODY));
  await fetched({ urls: [url], onProgress: (got, total) => seen.push([got, total]) });
  assert.deepEqual(seen.at(-1), [BODY.length, BODY.length]);
});

test("a server that never answers is left after the given time", async () => {
  const url = await serve(() => undefined);
  await assert.rejects(getText(url, { answerTimeoutMs: 50 }), /no answer from 127\.0\.0\.1:\d+ within 0\.05 s/);
});

test("proxies are chosen as the environment says", () => {
  const cases: { env: Record<string, string>; url: string; want: string | undefined }[] = [
    { env: {}, url: "https://a.example/", want: undefined },
    { env: { https_proxy: "http://p.example:3128" }, url: "https://a.example/", want: "http://p.example:3128/" },
    { env: { HTTPS_PROXY: "p.example:3128" }, url: "https://a.example/", want: "http://p.example:3128/" },
    { env: { HTTPS_PROXY: "p.example:3128" }, url: "http://a.example/", want: undefined },
    {
      env: { http_proxy: "http://p.example", no_proxy: "b.example, a.example" },
      url: "http://a.example/",
      want: undefined,
    },
    { env: { http_proxy: "http://p.example", NO_PROXY: ".example" }, url: "http://a.example/", want: undefined },
    {
      env: { http_proxy: "http://p.example", no_proxy: "a.example" },
      url: "http://ba.example/",
      want: "http://p.example/",
    },
    { env: { http_proxy: "http://p.example", no_proxy: "*" }, url: "http://a.example/", want: undefined },
    ...(
      [
        ["A.Example", "http://a.example/", true],
        ["10.0.0.0/8", "http://10.1.2.3/", true],
        ["10.0.0.0/8", "http://11.1.2.3/", false],
        ["10.0.0.0/8", "http://a.example/", false],
        ["10.0.0.0/99", "http://10.0.0.0/", false],
        ["10.1.2.3", "http://10.1.2.3:8080/", true],
        ["fd00::/8", "http://[fd00::1]/", true],
        ["::1", "http://[::1]/", true],
        ["[::1]:8080", "http://[::1]:8080/", true],
        ["a.example:8080", "http://a.example:8080/", true],
        ["a.example:8080", "http://a.example/", false],
        ["a.example:80", "http://b.a.example/", true],
      ] as const
    ).map(([no_proxy, url, direct]) => ({
      env: { http_proxy: "http://p.example", no_proxy },
      url,
      want: direct ? undefined : "http://p.example/",
    })),
  ];
  for (const { env, url, want } of cases) {
    for (const name of PROXIES) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, env);
    assert.equal(proxyFor(new URL(url))?.href, want, JSON.stringify(env));
  }
});

test("http goes to the proxy with the full address and the login", async () => {
  const seen: (string | undefined)[] = [];
  const proxy = await serve((request, response) => {
    seen.push(request.url, request.headers["proxy-authorization"]);
    response.end(BODY);
  });
  process.env["http_proxy"] = proxy.replace("//", "//me:pass%20word@");
  assert.equal(await getText("http://far.example/f"), BODY);
  assert.deepEqual(seen, ["http://far.example/f", `Basic ${Buffer.from("me:pass word").toString("base64")}`]);
});

test("https goes through a tunnel of the proxy", async () => {
  const seen: (string | undefined)[] = [];
  const proxy = await serve(good);
  lastServer()?.on("connect", (request, socket) => {
    seen.push(request.url);
    const plain = connect((lastServer()?.address() as AddressInfo).port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 go on\r\n\r\n");
      plain.pipe(socket).pipe(plain);
    });
    for (const end of [plain, socket]) end.on("error", () => end.destroy());
  });
  process.env["https_proxy"] = proxy;
  // The far end speaks no TLS: that it is asked for TLS at all shows that the tunnel stands.
  await assert.rejects(getText("https://far.example/f"), (error: Error) =>
    /SSL|TLS|EPROTO|hang up|reset/i.test(String(error)),
  );
  assert.deepEqual(seen, ["far.example:443"]);
});

test("the login in an address is shown to nobody", async () => {
  const url = "http://bob:geheim@127.0.0.1:1/a@b";
  const told: string[] = [];
  await assert.rejects(
    fetched({ urls: [url], attempts: 1, onFailure: (...words) => told.push(...words) }),
    (error: Error) => error.message.includes("  http://***@127.0.0.1:1/a@b: ") && !error.message.includes("geheim"),
  );
  assert.equal(told[0], "http://***@127.0.0.1:1/a@b");
});
