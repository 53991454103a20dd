import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { type RequestListener, type Server, createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { type Download, download } from "../../toolchain/download.js";
import { getText, proxyFor } from "../../toolchain/http.js";

const BODY = "what was asked for";
const SUM = createHash("sha256").update(BODY).digest("hex");
const PROXIES = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
const saved = { ...process.env };
let folder = "";
const servers: Server[] = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubexm-download-"));
  for (const name of PROXIES) Reflect.deleteProperty(process.env, name);
});

afterEach(() => {
  for (const name of PROXIES) Reflect.deleteProperty(process.env, name);
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

after(async () => {
  process.env = saved;
  await rm(folder, { recursive: true, force: true });
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Answers one request after the other with what stands in the list, the last one again and again. */
function answers(...list: readonly RequestListener[]): { listener: RequestListener; asked: () => number } {
  let asked = 0;
  const listener: RequestListener = (request, response) => {
    list[Math.min(asked++, list.length - 1)]?.(request, response);
  };
  return { listener, asked: () => asked };
}

const good: RequestListener = (_, response) => void response.end(BODY);
const other: RequestListener = (_, response) => void response.end("something else");
const broken: RequestListener = (_, response) => {
  response.writeHead(200, { "content-length": BODY.length });
  response.write(BODY.slice(0, 4), () => response.destroy());
};
const status =
  (code: number, headers = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(code, headers).end();

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
    assert.equal(server.asked(), asked);
    assert.deepEqual(await left(), []);
  });

for (const [what, list, attempts, asked, message] of [
  [
    "another checksum is refused and not asked for again",
    [other],
    4,
    1,
    /sha256 is [0-9a-f]{64}, expected .*; refused/,
  ],
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
    assert.equal(server.asked(), asked);
    assert.deepEqual(await readdir(folder), []);
  });

test("the next address is taken when one fails", async () => {
  const first = answers(other);
  const urls = [`${await serve(first.listener)}/f`, `${await serve(good)}/f`];
  assert.equal(await fetched({ urls }), BODY);
  assert.equal(first.asked(), 1);
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
  servers[0]?.on("connect", (request, socket) => {
    seen.push(request.url);
    const plain = connect((servers[0]?.address() as AddressInfo).port, "127.0.0.1", () => {
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
