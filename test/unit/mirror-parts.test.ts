import assert from "node:assert/strict";
import { test } from "node:test";
import { buildKey, wanted } from "../../lab/mirror/build.js";
import { goMod } from "../../lab/mirror/gomod.js";
import { addresses, sumText } from "../../lab/mirror/images.js";
import { parseReference } from "../../lab/mirror/oci.js";
import { PARTS } from "../../lab/mirror/parts.js";
import { USUAL_PARTS } from "../../lab/mirror/serve.js";
import type { Arch } from "../../lab/mirror/types.js";

test("every part is served at upstream's addresses, with upstream's checksum files", () => {
  const cases: { part: string; arch?: Arch; has: string[] }[] = [
    {
      part: "kubernetes@1.36.3",
      has: ["kubeadm", "kubelet", "kubectl", "kube-proxy"].flatMap((name) => [
        `dl.k8s.io/release/v1.36.3/bin/linux/amd64/${name}`,
        `dl.k8s.io/release/v1.36.3/bin/linux/amd64/${name}.sha256`,
      ]),
    },
    {
      part: "etcd",
      arch: "arm64",
      has: [
        "github.com/etcd-io/etcd/releases/download/v3.6.14/etcd-v3.6.14-linux-arm64.tar.gz",
        "github.com/etcd-io/etcd/releases/download/v3.6.14/SHA256SUMS",
      ],
    },
    {
      part: "containerd@v2.2.9",
      has: [
        "github.com/containerd/containerd/releases/download/v2.2.9/containerd-2.2.9-linux-amd64.tar.gz",
        "github.com/containerd/containerd/releases/download/v2.2.9/containerd-2.2.9-linux-amd64.tar.gz.sha256sum",
        "github.com/containerd/containerd/releases/download/v2.2.9/containerd-static-2.2.9-linux-amd64.tar.gz",
      ],
    },
    {
      part: "runc",
      has: [
        "github.com/opencontainers/runc/releases/download/v1.4.3/runc.amd64",
        "github.com/opencontainers/runc/releases/download/v1.4.3/runc.sha256sum",
      ],
    },
    {
      part: "cni-plugins",
      has: [
        "github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz",
        "github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz.sha256",
      ],
    },
    {
      part: "flannel",
      has: [
        "github.com/flannel-io/flannel/releases/download/v0.28.9/kube-flannel.yml",
        "github.com/flannel-io/flannel/releases/download/v0.28.9/flanneld-amd64",
      ],
    },
    {
      part: "flannel-cni",
      has: ["github.com/flannel-io/cni-plugin/releases/download/v1.9.1-flannel3/flannel-amd64"],
    },
    {
      part: "crictl",
      has: [
        "github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-linux-amd64.tar.gz",
        "github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-linux-amd64.tar.gz.sha256",
      ],
    },
    {
      part: "crane",
      arch: "arm64",
      has: [
        "github.com/google/go-containerregistry/releases/download/v0.22.1/go-containerregistry_Linux_arm64.tar.gz",
        "github.com/google/go-containerregistry/releases/download/v0.22.1/checksums.txt",
      ],
    },
    {
      part: "helm",
      has: ["get.helm.sh/helm-v3.19.0-linux-amd64.tar.gz", "get.helm.sh/helm-v3.19.0-linux-amd64.tar.gz.sha256sum"],
    },
  ];
  for (const { part, arch = "amd64", has } of cases) {
    const served = addresses(wanted(part, arch));
    assert.deepEqual(
      has.filter((url) => !served.includes(url)),
      [],
      part,
    );
  }
});

test("checksum files have upstream's three forms", () => {
  const sums = [
    { sha256: "aa", name: "one" },
    { sha256: "bb", name: "two" },
  ];
  assert.equal(sumText("bare", sums.slice(0, 1)), "aa\n");
  assert.equal(sumText("lines", sums), "aa  one\nbb  two\n");
  const signed = sumText("signed", sums).split("\n");
  assert.deepEqual(signed.slice(0, 5), [
    "-----BEGIN PGP SIGNED MESSAGE-----",
    "Hash: SHA512",
    "",
    "aa  one",
    "bb  two",
  ]);
});

for (const [name, part] of Object.entries(PARTS)) {
  for (const version of part.versions) {
    test(`${name} ${version} is complete: what it serves, it makes`, () => {
      const want = wanted(`${name}@${version}`, "amd64");
      const outputs = part.outputs(want.target);
      const made = new Set(outputs.flatMap((output) => [output.out, ...("names" in output ? output.names : [])]));
      const bodies = (part.downloads?.(want.target) ?? []).flatMap(({ body }) =>
        typeof body === "string" ? [body] : Object.values(body).filter((output) => output !== undefined),
      );
      const images = part.images?.(want.target) ?? [];
      const inside = images.flatMap(({ files }) => Object.values(files).filter((file) => typeof file === "string"));
      const program = part.expects?.(want.target)[0];
      const used = [...bodies, ...inside, ...(program === undefined ? [] : [program])];
      assert.deepEqual(
        used.filter((output) => !made.has(output)),
        [],
      );
      assert.ok(used.length > 0 || images.length > 0, "serves nothing");
      for (const path of images.flatMap(({ files }) => Object.keys(files))) assert.match(path, /^\//);
      for (const ref of images.flatMap(({ refs }) => refs)) assert.equal(parseReference(ref).host.includes("."), true);
      for (const output of outputs) if ("goMod" in output) assert.match(output.goMod, /^\t\S+ v\d/m);
    });
  }
}

test("the usual parts are all there", () => {
  assert.deepEqual(
    USUAL_PARTS.map((name) => wanted(name, "amd64").name),
    USUAL_PARTS,
  );
});

test("a wrong part or version is refused with what can be had", () => {
  const cases: [string, RegExp][] = [
    ["kubernets", /no part "kubernets": the mirror has kubernetes, etcd/],
    ["toString", /no part "toString"/],
    ["etcd@3.6/../x", /is not a version/],
    ["etcd@3.6.1\nreplace", /is not a version/],
    ["etcd@", /is not a version/],
  ];
  for (const [text, message] of cases) assert.throws(() => wanted(text, "amd64"), { name: "UserError", message });
});

test("a changed recipe is kept in another place, the same recipe in the same", () => {
  const want = wanted("crane", "amd64");
  const changed = { ...want, part: { ...want.part, outputs: () => [{ out: "crane", c: "int main;" }] } };
  assert.equal(buildKey(want), buildKey(wanted("crane@0.22.1", "amd64")));
  assert.notEqual(buildKey(want), buildKey(changed));
});

test("the wrapper of Kubernetes takes every staging module in the version that belongs to it", () => {
  const [kube] = PARTS["kubernetes"]?.outputs({ version: "1.34.1", arch: "amd64" }) ?? [];
  assert.ok(kube && "goMod" in kube);
  assert.match(kube.goMod, /^go 1\.24\.0$/m);
  assert.match(kube.goMod, /^\tk8s\.io\/kubernetes v1\.34\.1$/m);
  assert.match(kube.goMod, /^\tk8s\.io\/client-go => k8s\.io\/client-go v0\.34\.1$/m);
  assert.match(kube.ldflags ?? "", /-X k8s\.io\/component-base\/version\.gitMinor=34( |$)/);
});

test("a go.mod names modules and replacements, and leaves out what is empty", () => {
  assert.equal(
    goMod({ modules: { "a.b/c": "v1.0.0" } }),
    "module kubexm.lab/part\n\ngo 1.25.0\n\nrequire (\n\ta.b/c v1.0.0\n)\n",
  );
  assert.match(goMod({ modules: {}, replace: { "a.b/c": "./c" } }), /^replace \(\n\ta\.b\/c => \.\/c\n\)$/m);
});
