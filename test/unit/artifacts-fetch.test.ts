import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, link, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { fileFor, sources, wantedFile, type FileName, type Sources } from "../../artifacts/index.js";
import { type KeyPair, makeCa, makeServerCert } from "../../lab/mirror/ca.js";
import { run } from "../../toolchain/process.js";
import { answers, bytes, closeServers, page, serve, status } from "../harness/web.js";

const compiled = join(__dirname, "..", "..", "artifacts", "index.js");
const saved = { ...process.env };
let dir = "";
let ca: KeyPair;
/** New for every test: what has been fetched is remembered by its content. */
let body: Buffer;
let sha256 = "";

before(() => {
  ca = makeCa();
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-fetch-"));
  process.env["KUBEXM_CACHE"] = join(dir, "cache");
  process.env["KUBEXM_CLUSTER_DIR"] = join(dir, "cluster");
  body = randomBytes(300_000);
  sha256 = createHash("sha256").update(body).digest("hex");
});
afterEach(async () => {
  closeServers();
  await rm(dir, { recursive: true, force: true });
});
after(() => {
  process.env = saved;
});

/** Sources with these mirrors, which rebuild: upstream is no way out. */
const at = (urls: readonly (string | { url: string; caPath: string })[], names: readonly FileName[] = ["kubelet"]) =>
  sources.parse({
    mirrors: urls.map((url) => ({ ...(typeof url === "string" ? { url } : url), ownChecksums: true })),
    checksums: Object.fromEntries(names.map((name) => [`${name}/1.35.4/amd64`, sha256])),
  });

const kubelet = (from: Sources) => fileFor("kubelet", "v1.35.4", "amd64", from);
const ready = async (from: Sources) => {
  const said: string[] = [];
  await kubelet(from).ready((line) => said.push(line));
  return said;
};
const cache = () => join(dir, "cache");

async function isHere(): Promise<void> {
  const { path } = kubelet(at([]));
  assert.ok(body.equals(await readFile(path)));
  assert.ok(body.equals(await readFile(join(dir, "cluster", "kubernetes", "v1.35.4", "amd64", "kubelet"))));
  assert.deepEqual(await readdir(join(cache(), "partial")), []);
}

/** What there was before is as before: nothing wrong or half done may have the name of the file. */
async function isNotHere(): Promise<void> {
  await assert.rejects(stat(kubelet(at([])).path), /ENOENT/);
  await assert.rejects(stat(join(dir, "cluster")), /ENOENT/);
}

test("naming a file asks nobody", async () => {
  const mirror = answers(bytes(body));
  const { path, sha256: sum } = kubelet(at([await serve(mirror.listener)]));
  assert.equal(sum, sha256);
  assert.equal(path, join(cache(), "files", sha256, "file"));
  assert.equal(mirror.asked.length, 0);
  await isNotHere();
});

test("a file comes from its address at the mirror, once; afterwards nobody is asked", async () => {
  const mirror = answers(bytes(body));
  const from = at([await serve(mirror.listener)]);
  await Promise.all([ready(from), ready(from)]);
  await isHere();
  await ready(from);
  assert.deepEqual(
    mirror.asked.map(({ url }) => url),
    ["/dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet"],
  );
});

const wrong: RequestListener = (_, response) => void response.end("another file");
const short: RequestListener = (_, response) => void response.end(body.subarray(0, 1000));
const gone = "http://127.0.0.1:9";

/** A mirror with each fault, how often it is asked when it is the only one, and what is said of it. */
const FAULTS: readonly (readonly [what: string, listener: RequestListener, asked: number, reason: RegExp])[] = [
  ["a web page", page, 1, /a web page came, not the file/],
  ["nothing there", status(404), 1, /HTTP 404 Not Found/],
  ["redirects without end", status(302, { location: "/" }), 10, /more than 10 redirects/],
  ["another file", wrong, 2, /its sha256 is [0-9a-f]{64}, expected [0-9a-f]{64}; refused/],
  ["a truncated file", short, 2, /its sha256 is [0-9a-f]{64}, expected [0-9a-f]{64}; refused/],
];

for (const [what, listener, asked, reason] of FAULTS) {
  test(`a mirror with ${what} is left for the next, and told`, async () => {
    const bad = await serve(listener);
    const said = await ready(at([bad, await serve(bytes(body))]));
    assert.equal(said.length, 1);
    assert.ok(said[0]?.startsWith(`kubelet: ${bad}/dl.k8s.io/`), said[0]);
    assert.match(said[0] ?? "", reason);
    await isHere();
  });

  test(`a mirror with ${what} as the only one is an error that tells address, reason and way out`, async () => {
    const mirror = answers(listener);
    const url = await serve(mirror.listener);
    await assert.rejects(ready(at([url])), (error: Error) => {
      const [first, second = "", third, ...more] = error.message.split("\n");
      assert.equal(first, "cannot download kubelet 1.35.4 for amd64:");
      assert.ok(second.startsWith(`  ${url}/dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet: `), second);
      assert.match(second, reason);
      assert.match(
        third ?? "",
        /^ {2}what to do: .* name a mirror in cluster\.yaml \(mirrors\.files\); if .* remove checksums\.json .*$/,
      );
      assert.deepEqual([more, error.name], [[], "UserError"]);
      return true;
    });
    assert.equal(mirror.asked.length, asked);
    await isNotHere();
  });
}

test("a failed file can be had later in the same process", async () => {
  const mirror = answers(status(404), bytes(body));
  const from = at([await serve(mirror.listener)]);
  await assert.rejects(ready(from), /HTTP 404/);
  await ready(from);
  await isHere();
});

test("mirrors that do not rebuild come before upstream, in order", () => {
  const url = (path: string) => `https://mirror.example/${path}`;
  const mirrors = [{ url: url("a") }, { url: url("b"), replaces: "https://github.com" }, { url: url("c") }];
  const all = sources.parse({ mirrors, published: { "kubelet/1.37.0/amd64": sha256 } });
  const path = "dl.k8s.io/release/v1.37.0/bin/linux/amd64/kubelet";
  assert.deepEqual(
    wantedFile({ name: "kubelet", version: "1.37.0", arch: "amd64" }, all).addresses.map((one) => one.url),
    [url(`a/${path}`), url(`c/${path}`), `https://${path}`],
  );
});

test("a mirror with a certificate of its own needs caPath; a path that is wrong is told", async () => {
  const url = await serve(bytes(body), makeServerCert(ca, ["127.0.0.1"]));
  const caPath = join(dir, "ca.pem");
  await writeFile(caPath, ca.cert);
  await assert.rejects(ready(at([{ url, caPath: join(dir, "none.pem") }])), /none\.pem: .*mirrors\.files/);
  await ready(at([{ url, caPath }]));
  await isHere();
});

test("a connection that breaks goes on where it broke, also at another mirror", async () => {
  const partial = () => join(cache(), "partial", sha256);
  const grown = async (size: number) => {
    while ((await stat(partial()).catch(() => undefined))?.size !== size) await sleep(5);
  };
  const first = answers(bytes(body, 100_000, grown));
  const second = answers(bytes(body));
  await ready(at([await serve(first.listener), await serve(second.listener)]));
  assert.deepEqual(
    [first, second].map(({ asked }) => asked.map(({ headers }) => headers.range)),
    [[undefined], ["bytes=100000-"]],
  );
  await isHere();
});

/** A process that makes the file ready and tells what it hears. */
const child = (from: Sources) => [
  "-e",
  `require(${JSON.stringify(compiled)})
    .fileFor("kubelet", "1.35.4", "amd64", ${JSON.stringify(from)})
    .ready(console.log).then(() => console.log("ready"));`,
];

test("two processes at once share one download", async () => {
  const mirror = answers((request, response) => void sleep(200).then(() => bytes(body)(request, response)));
  const from = at([await serve(mirror.listener)]);
  const runs = await Promise.all([1, 2].map(() => run(process.execPath, child(from))));
  assert.deepEqual(
    runs.map(({ stdout }) => stdout),
    ["ready\n", "ready\n"],
  );
  assert.equal(mirror.asked.length, 1);
  await isHere();
});

test("a killed process's download is gone on with", async () => {
  const partial = () => join(cache(), "partial", sha256);
  const mirror = answers(
    (_, response) => {
      response.writeHead(200, { "content-length": body.length });
      response.write(body.subarray(0, 123_456));
    },
    (request, response) => {
      bytes(body)(request, response);
    },
  );
  const from = at([await serve(mirror.listener)]);
  const killed = spawn(process.execPath, child(from), { stdio: "ignore" });
  while ((await stat(partial()).catch(() => undefined))?.size !== 123_456) await sleep(10);
  killed.kill("SIGKILL");
  await once(killed, "close");
  await ready(from);
  assert.deepEqual(
    mirror.asked.map(({ headers }) => headers.range),
    [undefined, "bytes=123456-"],
  );
  await isHere();
});

test("a file that was changed in the cache is fetched anew by the next run", async () => {
  const mirror = answers(bytes(body));
  const from = at([await serve(mirror.listener)]);
  await run(process.execPath, child(from));
  const { path } = kubelet(from);
  await chmod(path, 0o644);
  await writeFile(path, "spoiled");
  await ready(from);
  assert.equal(mirror.asked.length, 2);
  await isHere();
});

test("files with the same content are downloaded once, and are one file on the disk", async () => {
  const mirror = answers(bytes(body));
  const from = at([await serve(mirror.listener)], ["kubelet", "kubectl"]);
  await Promise.all(
    (["kubelet", "kubectl"] as const).map((name) => fileFor(name, "1.35.4", "amd64", from).ready(() => 0)),
  );
  assert.equal(mirror.asked.length, 1);
  const folder = join(dir, "cluster", "kubernetes", "v1.35.4", "amd64");
  const [one, other] = await Promise.all(["kubelet", "kubectl"].map((name) => stat(join(folder, name))));
  assert.equal(one?.ino, other?.ino);
  assert.deepEqual((await readdir(folder)).sort(), ["kubectl", "kubelet"]);
});

test("a file of another cluster is not downloaded again, only linked; what was changed there is put right", async () => {
  const mirror = answers(bytes(body));
  const from = at([await serve(mirror.listener)]);
  await ready(from);
  process.env["KUBEXM_CLUSTER_DIR"] = join(dir, "second");
  await ready(from);
  const there = join(dir, "second", "kubernetes", "v1.35.4", "amd64", "kubelet");
  assert.ok(body.equals(await readFile(there)));
  await rm(there);
  await writeFile(`${there}.old`, "an older one");
  await link(`${there}.old`, there);
  await ready(from);
  assert.ok(body.equals(await readFile(there)));
  assert.equal(mirror.asked.length, 1);
});

test("many hosts that want a file at once all find it in the folder of their cluster", async () => {
  const from = at([await serve(bytes(body))]);
  await ready(from);
  for (const round of [1, 2, 3, 4, 5]) {
    process.env["KUBEXM_CLUSTER_DIR"] = join(dir, `cluster-${round}`);
    await Promise.all(Array.from({ length: 20 }, () => ready(from)));
  }
});

test("without a folder of a cluster the cache alone has it", async () => {
  delete process.env["KUBEXM_CLUSTER_DIR"];
  await ready(at([await serve(bytes(body))]));
  assert.ok(body.equals(await readFile(kubelet(at([])).path)));
});

test("no more than four files come at once", async () => {
  const names: FileName[] = ["kubelet", "kubeadm", "kubectl", "runc", "crictl", "containerd", "etcd"];
  const bodies = new Map(names.map((name) => [name, randomBytes(1000)]));
  let [now, most] = [0, 0];
  const listener: RequestListener = (request, response) => {
    most = Math.max(most, ++now);
    const [, found] = [...bodies].find(([name]) => request.url?.includes(name)) ?? assert.fail(request.url);
    void sleep(100).then(() => {
      now--;
      bytes(found)(request, response);
    });
  };
  const from = sources.parse({
    mirrors: [{ url: await serve(listener), ownChecksums: true }],
    checksums: Object.fromEntries(
      [...bodies].map(([name, content]) => [
        `${name}/1.35.4/amd64`,
        createHash("sha256").update(content).digest("hex"),
      ]),
    ),
  });
  await Promise.all(names.map((name) => fileFor(name, "1.35.4", "amd64", from).ready(() => 0)));
  assert.equal(most, 4);
});

test("an address where nobody listens is told with the others", async () => {
  await assert.rejects(ready(at([gone, await serve(status(404))])), (error: Error) => {
    assert.match(error.message, /127\.0\.0\.1:9\/\S+: connect ECONNREFUSED/);
    assert.match(error.message, /HTTP 404/);
    return true;
  });
});
