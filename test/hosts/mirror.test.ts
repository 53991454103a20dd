import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { access, chmod, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { machineArch } from "../../lab/mirror/build.js";
import { type Mirror, startMirror } from "../../lab/mirror/serve.js";
import { cacheDir } from "../../toolchain/cache.js";
import { owner } from "../../toolchain/owner.js";
import { run } from "../../toolchain/process.js";

const arch = machineArch();
let dir = "";
let mirror: Mirror;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-mirror-"));
  mirror = await startMirror({ parts: ["pause", "crane", "runc"], names: ["mirror.lab"] });
  await mirror.ready;
});

after(async () => {
  await mirror.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Downloads as any user would, trusting the mirror's authority only. */
async function fetched(path: string, ...more: string[]): Promise<string> {
  const to = join(dir, path.split("/").at(-1) ?? "");
  const args = ["-sS", "-f", "--noproxy", "*", "--cacert", mirror.caPath, "-o", to];
  await run("curl", [...args, ...more, `${mirror.urls.https}/${path}`]);
  return to;
}

const sha256 = async (file: string) =>
  createHash("sha256")
    .update(await readFile(file))
    .digest("hex");

test("a built runc is downloaded over TLS, is what the signed sums say, and runs", async () => {
  const at = "github.com/opencontainers/runc/releases/download/v1.4.3";
  const runc = await fetched(`${at}/runc.${arch}`);
  const sums = await readFile(await fetched(`${at}/runc.sha256sum`), "utf8");
  assert.ok(sums.includes(`${await sha256(runc)}  runc.${arch}\n`), sums);
  await chmod(runc, 0o755);
  const { stdout } = await run(runc, ["--version"]);
  assert.match(stdout, /^runc version 1\.4\.3\n/);
  assert.match(stdout, /^libseccomp: /m);
});

test("half a download is completed by asking for the rest", async () => {
  const at = `github.com/opencontainers/runc/releases/download/v1.4.3/runc.${arch}`;
  const whole = await readFile(await fetched(at));
  await writeFile(join(dir, `runc.${arch}`), whole.subarray(0, 1_000_000));
  assert.deepEqual(await readFile(await fetched(at, "-C", "-")), whole);
});

test("images are pulled by kubeadm's and Docker's names, pushed back, with TLS and without", async () => {
  const at = "github.com/google/go-containerregistry/releases/download/v0.22.1";
  const name = `go-containerregistry_Linux_${arch === "amd64" ? "x86_64" : arch}.tar.gz`;
  const archive = await fetched(`${at}/${name}`);
  const sums = await readFile(await fetched(`${at}/checksums.txt`), "utf8");
  assert.equal(sums, `${await sha256(archive)}  ${name}\n`);
  await run("tar", ["-xzf", archive, "-C", dir, "crane"]);

  const crane = async (...args: string[]) => {
    const env = { SSL_CERT_FILE: mirror.caPath, HOME: dir, NO_PROXY: "*" };
    return (await run(join(dir, "crane"), args, { env })).stdout.trim();
  };
  const { registry, registryHttp } = mirror.urls;
  await crane("validate", "--remote", `${registry}/pause:3.10.1`);
  const digest = await crane("digest", `${registry}/pause:3.10.1`);
  const image = join(dir, "pause.tar");
  await crane("pull", `${registry}/pause:3.10.1`, image);
  await crane("push", "--insecure", image, `${registryHttp}/again/pause:1`);
  await crane("validate", "--remote", `${registry}/again/pause:1`);
  const config = JSON.parse(await crane("config", `${registry}/again/pause:1`)) as { config: { Entrypoint: string[] } };
  assert.deepEqual(config.config.Entrypoint, ["/pause"]);
  // The same manifest under another name, without a copy through this machine.
  await crane("copy", `${registry}/pause:3.10.1`, `${registry}/again/pause:2`);
  assert.equal(await crane("digest", `${registry}/again/pause:2`), digest);
});

test("a client that does not know the authority is refused", async () => {
  const args = ["-sS", "--noproxy", "*", `${mirror.urls.https}/`];
  await assert.rejects(
    run("curl", args, { env: { CURL_CA_BUNDLE: undefined, SSL_CERT_FILE: undefined } }),
    /certificate/,
  );
});

test("a second mirror takes other ports, and leaves nothing when it stops", async () => {
  // Of this process: other mirrors may come and go in the same cache.
  const own = `mirror.tmp-${owner()}-`;
  const held = async () => (await readdir(join(cacheDir(), "tmp"))).filter((name) => name.startsWith(own));
  const before = await held();
  assert.equal(before.length, 1);
  const [, port = ""] = /:(\d+)$/.exec(mirror.urls.https) ?? [];
  const second = await startMirror({ parts: ["pause"], httpsPort: Number(port) });
  await second.ready;
  const { http, https, registry, registryHttp } = second.urls;
  assert.notEqual(https, mirror.urls.https);
  await access(second.caPath);
  await second.stop();
  assert.deepEqual((await held()).sort(), before.sort());
  for (const url of [http, `http://${registry}`, `http://${registryHttp}`])
    await assert.rejects(run("curl", ["-sS", "--noproxy", "*", url]), /Failed to connect|refused/);
});
