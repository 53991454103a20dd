import assert from "node:assert/strict";
import { test } from "node:test";
import { ARCHES, FILES, fileFor, imagesFor, minors, sources, versionsFor, wantedFile } from "../../artifacts/index.js";
import { pinned, pinnedVersions, rowOf, upstream } from "../../artifacts/catalogue.js";
import { PARTS } from "../../lab/mirror/parts.js";
import { ArgumentError } from "../../provider/errors.js";

const none = sources.parse({});

const spec = (version: string, runtime = {}, rest = {}) => ({
  kubernetes: { version, containerRuntime: { type: "containerd", containerd: {}, ...runtime } },
  etcd: {},
  network: { flannel: {} },
  ...rest,
});

/** As cmd/kubeadm/app/constants/constants.go of these releases has them. */
for (const [kubernetes, etcd, coredns, pause] of [
  ["1.34.1", "3.6.4", "1.12.1", "3.10.1"],
  ["1.34.2", "3.6.5", "1.12.1", "3.10.1"],
  ["1.34.11", "3.6.5", "1.12.1", "3.10.1"],
  ["1.35.4", "3.6.6", "1.13.1", "3.10.1"],
  ["1.36.3", "3.6.8", "1.14.2", "3.10.2"],
  ["1.37.0", "3.7.0", "1.14.6", "3.10.2"],
] as const)
  test(`Kubernetes ${kubernetes} goes with what its kubeadm names`, () => {
    const versions = versionsFor(spec(`v${kubernetes}`));
    assert.deepEqual(
      [versions.kubernetes, versions.etcd, versions.coredns, versions.pause],
      [kubernetes, etcd, coredns, pause],
    );
  });

test("images have the names that kubeadm and flannel pull them by", () => {
  assert.deepEqual(imagesFor(versionsFor(spec("v1.35.4"))), [
    "registry.k8s.io/kube-apiserver:v1.35.4",
    "registry.k8s.io/kube-controller-manager:v1.35.4",
    "registry.k8s.io/kube-scheduler:v1.35.4",
    "registry.k8s.io/kube-proxy:v1.35.4",
    "registry.k8s.io/coredns/coredns:v1.13.1",
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/etcd:3.6.6-0",
    "ghcr.io/flannel-io/flannel:v0.28.9",
    "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3",
  ]);
});

test("what cluster.yaml says goes before the catalogue, with or without v", () => {
  const containerd = (runtime: object) => versionsFor(spec("v1.35.4", runtime)).containerd;
  assert.equal(containerd({ version: "2.2.9" }), "2.2.9");
  assert.equal(containerd({ containerd: { version: "2.3.1" } }), "2.3.1");
  assert.equal(containerd({ type: "docker", version: "28.0.0" }), "2.2.7");
  const { etcd, flannel } = versionsFor(
    spec("v1.35.4", {}, { etcd: { version: "v3.6.14" }, network: { flannel: { version: "0.28.1" } } }),
  );
  assert.deepEqual([etcd, flannel], ["3.6.14", "0.28.1"]);
});

for (const version of ["v1.33.9", "v1.38.0", "v2.0.0"])
  test(`Kubernetes ${version} is refused, and what there is is named`, () => {
    assert.throws(
      () => versionsFor(spec(version)),
      (error: Error) => {
        assert.ok(error instanceof ArgumentError);
        assert.equal(error.message, `"${version}": kubexm installs Kubernetes 1.34 to 1.37; write for example v1.36.4`);
        return true;
      },
    );
  });

for (const [[name, version, arch], message] of [
  [["kubelet", "1.35.99", "amd64"], /no kubelet of this version for amd64 .*; there are 1\.35\.0, .*1\.35\.8$/],
  [["runc", "9.9.9", "arm64"], /no runc of this version for arm64 .*; there are 1\.2\.9, .*1\.4\.3$/],
  [["kubelet", "1.35.4", "riscv64"], /"riscv64": there is no kubelet for this processor; there is amd64 and arm64/],
  [["etcd", "../../evil", "amd64"], /is not a version of etcd; write for example 3\.6\.14/],
] as const)
  test(`a file that there is not: ${name} ${version} ${arch}`, () => {
    assert.throws(
      () => fileFor(name, version, arch, none),
      (error: Error) => {
        assert.match(error.message, message);
        return error instanceof ArgumentError;
      },
    );
  });

test("what the catalogue names is pinned, but for releases newer than its checksums", () => {
  const open = minors().flatMap((minor) => {
    const versions = versionsFor(spec(`v${minor}.0`));
    const named = { ...versions, kubelet: versions.kubernetes, "cni-plugins": versions.cniPlugins };
    return FILES.flatMap((name) => {
      const version = (named as Record<string, string>)[name] ?? versions.kubernetes;
      return ARCHES.flatMap((arch) => (pinned({ name, version, arch }) ? [] : [`${name} ${version}`]));
    });
  });
  assert.deepEqual([...new Set(open)].sort(), ["etcd 3.7.0", "kubeadm 1.37.0", "kubectl 1.37.0", "kubelet 1.37.0"]);
});

test("every pinned version has both architectures and the form of a checksum", () => {
  for (const name of FILES)
    for (const version of pinnedVersions(name))
      for (const arch of ARCHES) assert.match(pinned({ name, version, arch }) ?? "", /^[0-9a-f]{64}$/, name + version);
});

test("addresses are those that the lab's mirror serves as upstream's, with their checksum files", () => {
  const places = { "cni-plugins": "cni-plugins", kubeadm: "kubernetes", kubelet: "kubernetes", kubectl: "kubernetes" };
  for (const name of FILES) {
    const part = PARTS[(places as Record<string, string>)[name] ?? name];
    for (const version of part?.versions ?? assert.fail(name))
      for (const arch of ARCHES) {
        const { url, sums } = upstream({ name, version, arch });
        const served = part?.downloads?.({ version, arch }).find((one) => `https://${one.url}` === url);
        assert.ok(served, url);
        assert.ok(
          served.sums.some((sum) => `https://${sum.url}` === sums),
          sums,
        );
      }
  }
});

test("the folders of a cluster are those of the requirements", () => {
  const place = (...[name, version]: [(typeof FILES)[number], string]) =>
    wantedFile({ name, version, arch: "amd64" }, none).place;
  assert.equal(place("kubelet", "1.35.4"), "kubernetes/v1.35.4/amd64/kubelet");
  assert.equal(place("etcd", "3.6.14"), "etcd/3.6.14/amd64/etcd-v3.6.14-linux-amd64.tar.gz");
  assert.equal(
    place("containerd", "2.2.7"),
    "container_runtime/containerd/2.2.7/amd64/containerd-2.2.7-linux-amd64.tar.gz",
  );
  assert.equal(place("runc", "1.4.3"), "container_runtime/runc/1.4.3/amd64/runc.amd64");
});

test("rows are found by minor and patch, and a newer patch takes the last", () => {
  assert.equal(rowOf("v1.34.99")?.from, "1.34.2");
  assert.equal(rowOf("1.34.1-rc.0")?.from, "1.34.0");
  assert.equal(rowOf("1.4.0"), undefined);
});
