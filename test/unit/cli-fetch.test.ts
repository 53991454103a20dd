import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { lstat, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bar } from "../../cli/fetch.js";
import { run } from "../../toolchain/process.js";
import { answers, closeServers, serve } from "../harness/web.js";

const entry = join(__dirname, "..", "..", "cli", "main.js");
let dir = "";

/** A mirror that rebuilds: every file is its own address, every checksum file in the form of upstream's. */
const rebuilt: RequestListener = (request, response) => {
  const path = request.url ?? "";
  const [, of, , signed] = /^(.*?)(\.sha256(sum)?)?$/.exec(path) ?? [];
  if (of === path) return void response.end(path);
  const file = path.endsWith("/runc.sha256sum") ? path.replace(/sha256sum$/, "amd64") : (of ?? "");
  const hash = createHash("sha256").update(file).digest("hex");
  response.end(signed ? `${hash}  ${file.split("/").at(-1) ?? ""}\n` : `${hash}\n`);
};

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "kubexm-fetch-"));
});
after(async () => {
  closeServers();
  await rm(dir, { recursive: true, force: true });
});

const cluster = (url: string) => `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: { name: prod }
spec:
  hosts: [{ name: m1, address: 192.0.2.1, arch: amd64 }]
  roleGroups: { etcd: [m1], master: [m1], worker: [m1] }
  kubernetes: { version: v1.35.4, containerRuntime: { version: 2.2.9 } }
  mirrors: { files: [{ url: "${url}", ownChecksums: true }] }
`;

const fetch = (cache: string, ...args: string[]) =>
  run(process.execPath, [entry, "fetch", ...args], {
    cwd: dir,
    env: { KUBEXM_CACHE: join(dir, cache), KUBEXM_CLUSTER_DIR: undefined },
    okCodes: [0, 1, 2],
  });

test("kubexm fetch brings every file of a cluster, and a second time asks nobody", async () => {
  const mirror = answers(rebuilt);
  await writeFile(join(dir, "cluster.yaml"), cluster(await serve(mirror.listener)));
  const first = await fetch("cache");
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^kubelet 1\.35\.4 amd64: 0 MB: \.kubexm\/prod\/kubernetes\/v1\.35\.4\/amd64\/kubelet$/m);
  assert.match(first.stdout, /^7 of 7 files are here \(.* s\)$/m);
  const asked = mirror.asked.length;
  assert.equal(asked, 14);

  const { code, stdout } = await fetch("cache", "--json");
  assert.deepEqual([code, mirror.asked.length], [0, asked]);
  const { files } = JSON.parse(stdout) as { files: { name: string; path: string; sha256: string }[] };
  assert.deepEqual(files.map(({ name }) => name).sort(), [
    ...["cni-plugins", "containerd", "crictl", "kubeadm", "kubectl", "kubelet", "runc"],
  ]);
  for (const { path, sha256 } of files)
    assert.equal(
      createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
      sha256,
      path,
    );
  // What is secret comes here later.
  assert.equal((await lstat(join(dir, ".kubexm", "prod"))).mode & 0o777, 0o700);
});

test("kubexm fetch tells what cannot be had, and brings the rest", async () => {
  const url = await serve((request, response) => {
    if (request.url?.endsWith(".tgz")) response.writeHead(404).end();
    else rebuilt(request, response);
  });
  await writeFile(join(dir, "other.yaml"), cluster(url));
  const { code, stdout, stderr } = await fetch("other", "-f", "other.yaml");
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^cannot download cni-plugins 1\.9\.1 for amd64:\n {2}http:\S+\.tgz: HTTP 404 Not Found\n {2}what to do: /m,
  );
  assert.match(stdout, /^6 of 7 files are here/m);
});

test("a bar says how far a file is, as far as that is known", () => {
  assert.equal(bar({ received: 5e6, total: 10e6 }), `[${"#".repeat(12)}${".".repeat(12)}] 5 of 10 MB`);
  assert.equal(bar({ received: 0, total: 0 }), `[${".".repeat(24)}] 0 of 0 MB`);
  assert.equal(bar({ received: 5e6 }), "5 MB");
});
