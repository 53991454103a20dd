import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { sourcesFor } from "../../artifacts/index.js";
import { checksumIn } from "../../artifacts/published.js";
import { mirrored } from "../../artifacts/sources.js";
import { type KeyPair, makeCa, makeServerCert } from "../../lab/mirror/ca.js";
import { run } from "../../toolchain/process.js";
import { answers, closeServers, lastServer, page, serve, status } from "../harness/web.js";

const A = "a".repeat(64);
const B = "b".repeat(64);
const saved = { ...process.env };
let dir = "";
let ca: KeyPair;

before(() => {
  ca = makeCa();
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-sources-"));
  process.env["KUBEXM_CLUSTER_DIR"] = dir;
});
afterEach(async () => {
  closeServers();
  await rm(dir, { recursive: true, force: true });
});
after(() => {
  process.env = saved;
});

const says =
  (text: string): RequestListener =>
  (_, response) =>
    void response.end(text);

type File = Parameters<typeof sourcesFor>[1][number];
const kubelet: File = { name: "kubelet", version: "v1.35.4", arch: "amd64" };
const runc: File = { name: "runc", version: "1.4.3", arch: "arm64" };

interface Row {
  url: string;
  ownChecksums?: boolean;
  replaces?: string;
  caPath?: string;
}
const from = (rows: readonly Row[], files: readonly File[]) =>
  sourcesFor({ zone: "", mirrors: { files: rows.map((row) => ({ ownChecksums: true, ...row })) } }, files);

for (const [what, text, want] of [
  ["the hash alone", `${A}\n`, A],
  ["the hash alone, without an end of line", A, A],
  ["the hash and the name", `${A}  runc.arm64\n`, A],
  ["the name with its folder", `${A}  ./dist/runc.arm64\n`, A],
  ["a binary mark and capitals", `${A.toUpperCase()} *runc.arm64\n`, A],
  ["several files", `${B}  runc.amd64\n${A}  runc.arm64\n`, A],
  ["a signed text", `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n${A}  runc.arm64\n-----BEGIN\nab=\n`, A],
  ["other files only", `${B}  runc.amd64\n`, undefined],
  ["other files of which one only begins so", `${B}  runc.arm64.asc\n`, undefined],
  ["no checksum", "<html>\n", undefined],
] as const)
  test(`a checksum is read: ${what}`, () => assert.equal(checksumIn(text, "runc.arm64"), want));

const upstream = "https://dl.k8s.io/release/v1.35.4/kubelet";
for (const [row, want] of [
  [{ url: "http://m" }, "http://m/dl.k8s.io/release/v1.35.4/kubelet"],
  [{ url: "http://m/" }, "http://m/dl.k8s.io/release/v1.35.4/kubelet"],
  [{ url: "http://m/k", replaces: "https://dl.k8s.io" }, "http://m/k/release/v1.35.4/kubelet"],
  [{ url: "http://m/k/", replaces: "https://dl.k8s.io/release/" }, "http://m/k/v1.35.4/kubelet"],
  [{ url: "http://m", replaces: "https://dl.k8s" }, undefined],
  [{ url: "http://m", replaces: "https://github.com" }, undefined],
] as const)
  test(`an address at a mirror: ${JSON.stringify(row)}`, () =>
    assert.equal(mirrored({ ownChecksums: false, ...row }, upstream)?.url, want));

test("checksums of a mirror that rebuilds are read from its own files, once, and recorded", async () => {
  const sums = answers(says(`${A}\n`));
  const url = await serve(sums.listener);
  const want = {
    mirrors: [{ url, ownChecksums: true }],
    checksums: { "kubelet/1.35.4/amd64": A },
    published: {},
  };
  assert.deepEqual(await from([{ url }], [kubelet, kubelet]), want);
  assert.deepEqual(
    sums.asked.map((request) => request.url),
    ["/dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet.sha256"],
  );
  closeServers();
  assert.deepEqual(await from([{ url }], [kubelet]), want);
});

test("the login in a mirror's address is not recorded", async () => {
  const url = (await serve(says(`${A}\n`))).replace("://", "://bob:geheim@");
  const row = [{ url }];
  const want = await from(row, [kubelet]);
  const record = await readFile(join(dir, "checksums.json"), "utf8");
  assert.match(record, /\*\*\*@127/);
  assert.doesNotMatch(record, /geheim/);
  closeServers();
  assert.deepEqual(await from(row, [kubelet]), want);
});

test("one checksum file serves both architectures", async () => {
  const sums = answers(says(`${A}  runc.arm64\n${B}  runc.amd64\n`));
  const { checksums } = await from([{ url: await serve(sums.listener) }], [runc, { ...runc, arch: "amd64" }]);
  assert.deepEqual(checksums, { "runc/1.4.3/arm64": A, "runc/1.4.3/amd64": B });
  assert.equal(sums.asked.length, 1);
});

test("what a mirror has not rebuilt comes from the next that has, else it is upstream's; only that one is asked for again", async () => {
  const first = answers(status(404));
  const second = answers((request, response) =>
    request.url?.includes("runc") ? response.end(`${A}  runc.arm64\n`) : response.writeHead(404).end(),
  );
  const rows = [{ url: await serve(first.listener) }, { url: await serve(second.listener) }];
  for (let run = 0; run < 2; run++) {
    const { checksums, published } = await from(rows, [kubelet, runc]);
    assert.deepEqual([checksums, published], [{ "runc/1.4.3/arm64": A }, {}]);
    assert.deepEqual([first.asked.length, second.asked.length], [2 + run, 2 + run]);
  }
});

test("one that is broken is left for the next, and what was found then stays, also when it is mended", async () => {
  const first = answers(status(500), says(B));
  const second = answers(says(A));
  const rows = [{ url: await serve(first.listener) }, { url: await serve(second.listener) }];
  for (let run = 0; run < 2; run++)
    assert.deepEqual((await from(rows, [kubelet])).checksums, { "kubelet/1.35.4/amd64": A });
  assert.deepEqual([first.asked.length, second.asked.length], [1, 1]);
  assert.deepEqual((await from(rows.slice(0, 1), [kubelet])).checksums, { "kubelet/1.35.4/amd64": B });
});

test("a checksum file without the file is as good as none", async () => {
  const rows = [{ url: await serve(says(`${B}  runc.amd64\n`)) }, { url: await serve(says(`${A}  runc.arm64\n`)) }];
  assert.deepEqual((await from(rows, [runc])).checksums, { "runc/1.4.3/arm64": A });
  assert.deepEqual((await from(rows.slice(0, 1), [runc])).checksums, {});
});

test("mirrors that do not rebuild are not asked for checksums", async () => {
  const sums = answers(says(A));
  const { checksums } = await from([{ url: await serve(sums.listener), ownChecksums: false }], [kubelet]);
  assert.deepEqual([checksums, sums.asked.length], [{}, 0]);
});

for (const [what, listener, reason] of [
  ["a web page", page, /holds no sha256: this is not a checksum file/],
  ["redirects without end", status(302, { location: "/" }), /more than 10 redirects/],
  ["no entry", status(403), /HTTP 403 Forbidden/],
] as const)
  test(`a mirror that rebuilds and gives ${what} for a checksum is named, and nothing recorded`, async () => {
    const url = await serve(listener);
    await assert.rejects(from([{ url }], [kubelet]), (error: Error) => {
      assert.match(
        error.message,
        /^cannot download the checksum of kubelet 1\.35\.4 for amd64:\n {2}http:\S+kubelet\.sha256: /,
      );
      assert.match(error.message, reason);
      assert.match(error.message, /what to do: .*mirrors\.files in cluster\.yaml$/);
      return true;
    });
    await assert.rejects(readFile(join(dir, "checksums.json")), /ENOENT/);
  });

test("a mirror with a certificate of its own needs caPath", async () => {
  const url = await serve(says(A), makeServerCert(ca, ["127.0.0.1"]));
  const caPath = join(dir, "ca.pem");
  await writeFile(caPath, ca.cert);
  const { mirrors, checksums } = await from([{ url, caPath }], [kubelet]);
  assert.deepEqual([mirrors[0]?.caPath, checksums], [caPath, { "kubelet/1.35.4/amd64": A }]);
  await rm(join(dir, "checksums.json"));
  await assert.rejects(from([{ url, caPath: join(dir, "no.pem") }], [kubelet]), /no\.pem: the mirror's certificate/);
});

test("several that record at once do not take each other's file away", async () => {
  const url = await serve(says(A));
  await Promise.all(Array.from({ length: 20 }, () => from([{ url }], [kubelet])));
  assert.deepEqual(await readdir(dir), ["checksums.json"]);
});

test("a record that somebody spoiled is named", async () => {
  await writeFile(join(dir, "checksums.json"), "{");
  await assert.rejects(from([], [kubelet]), /checksums\.json cannot be read .*; remove it, and it is made anew/);
});

/** In a process of its own, as trust in a certificate and the proxy are read at its start. */
async function upstreamChecksum(listener: RequestListener, version: string) {
  const upstreamPort = Number(new URL(await serve(listener, makeServerCert(ca, ["dl.k8s.io"]))).port);
  const proxy = await serve(status(500));
  lastServer()?.on("connect", (_, socket) => {
    const far = connect(upstreamPort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 go on\r\n\r\n");
      far.pipe(socket).pipe(far);
    });
    for (const end of [far, socket]) end.on("error", () => end.destroy());
  });
  await writeFile(join(dir, "ca.pem"), ca.cert);
  const compiled = join(__dirname, "..", "..", "artifacts", "index.js");
  const script = `require(${JSON.stringify(compiled)})
    .sourcesFor({ zone: "cn", mirrors: { files: [] } }, [{ name: "kubelet", version: "${version}", arch: "arm64" }])
    .then((found) => console.log(JSON.stringify(found)), (error) => console.log(error.name + ": " + error.message));`;
  const env = { HTTPS_PROXY: proxy, https_proxy: undefined, NODE_EXTRA_CA_CERTS: join(dir, "ca.pem"), no_proxy: "" };
  return (await run(process.execPath, ["-e", script], { env })).stdout;
}

test("a version newer than the catalogue's checksums gets upstream's own, from upstream", async () => {
  const sums = answers(says(A));
  assert.deepEqual(JSON.parse(await upstreamChecksum(sums.listener, "1.37.0")), {
    mirrors: [{ url: "https://files.m.daocloud.io", ownChecksums: false }],
    checksums: {},
    published: { "kubelet/1.37.0/arm64": A },
  });
  assert.equal(sums.asked[0]?.url, "/release/v1.37.0/bin/linux/arm64/kubelet.sha256");
  assert.match(
    await readFile(join(dir, "checksums.json"), "utf8"),
    /"kubelet\/1\.37\.0\/arm64 upstream": \{\s+"sha256": "aaaa/,
  );
});

test("a version that upstream does not have is refused with those there are", async () => {
  assert.match(
    await upstreamChecksum(status(404), "1.35.99"),
    /^ArgumentError: "1\.35\.99": there is no kubelet of this version .*; there are 1\.35\.0, .*1\.35\.8$/m,
  );
});

test("what is needed perhaps is asked of mirrors with checksums of their own, and may be missing", async () => {
  const arm = { ...kubelet, arch: "arm64" };
  const mirror = async (listener: Parameters<typeof serve>[0]) =>
    sourcesFor({ zone: "", mirrors: { files: [{ url: await serve(listener), ownChecksums: true }] } }, [], [arm]);
  assert.deepEqual((await mirror(says(`${A}\n`))).checksums, { "kubelet/1.35.4/arm64": A });
  assert.deepEqual((await mirror(page)).checksums, {});
  // A version without a pinned checksum: upstream, which cannot be reached here, is not asked.
  const odd = { ...arm, version: "1.35.99" };
  const url = await serve(status(404));
  const { checksums, published } = await sourcesFor(
    { zone: "", mirrors: { files: [{ url, ownChecksums: true }] } },
    [],
    [odd],
  );
  assert.deepEqual([checksums, published], [{}, {}]);
});
