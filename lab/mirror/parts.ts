import { goMod, linker } from "./gomod.js";
import { KUBE_IMAGES, KUBE_PROGRAMS, kubernetes } from "./kubernetes.js";
import { PAUSE_C, VPC_STUB } from "./sources.js";
import type { Download, Part, Sum } from "./types.js";

const GITHUB = "github.com";

const release = (repository: string, tag: string, file: string) =>
  `${GITHUB}/${repository}/releases/download/${tag}/${file}`;

/** A folder of an archive with these outputs in it. */
const folderOf = (folder: string, names: readonly string[]): Download["body"] => ({
  [folder]: undefined,
  ...Object.fromEntries(names.map((name) => [folder + name, name])),
});

/** A download with one checksum file of its own beside it. */
const summed = (url: string, body: Download["body"], ...sums: [suffix: string, shape: Sum["shape"]][]): Download => ({
  url,
  body,
  sums: sums.map(([suffix, shape]) => ({ url: url + suffix, shape })),
});

const ETCD = ["server", "etcdctl", "etcdutl"];
const CONTAINERD = ["containerd", "containerd-shim-runc-v2", "ctr"];
const CNI =
  `bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap
  tuning vlan vrf`.split(/\s+/);

const VPC = "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/vpc";

const REGISTRY_CONFIG = `version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/registry
  delete:
    enabled: true
http:
  addr: :5000
`;

/** Everything the mirror can make, by name. A new part is a new entry. */
export const PARTS: Readonly<Record<string, Part>> = {
  kubernetes: {
    versions: ["1.35.4", "1.36.3", "1.34.1"],
    outputs: (target) => [kubernetes(target)],
    downloads: ({ version, arch }) =>
      KUBE_PROGRAMS.map((name) =>
        summed(`dl.k8s.io/release/v${version}/bin/linux/${arch}/${name}`, name, [".sha256", "bare"]),
      ),
    images: ({ version }) =>
      KUBE_IMAGES.map((name) => ({
        refs: [`registry.k8s.io/${name}:v${version}`],
        // kube-proxy calls iptables, nft and conntrack.
        base: name === "kube-proxy" ? "debian" : "tiny",
        files: Object.fromEntries(["kube", ...KUBE_IMAGES].map((file) => [`/usr/local/bin/${file}`, file])),
        entrypoint: [`/usr/local/bin/${name}`],
      })),
    expects: ({ version }) => ["kubeadm", "config", "images", "list", "--kubernetes-version", `v${version}`],
  },
  etcd: {
    versions: ["3.6.14"],
    outputs: ({ version }) =>
      ETCD.map((name) => ({
        out: name === "server" ? "etcd" : name,
        goMod: goMod({ modules: Object.fromEntries(ETCD.map((m) => [`go.etcd.io/etcd/${m}/v3`, `v${version}`])) }),
        package: `go.etcd.io/etcd/${name}/v3`,
        ldflags: linker({ "go.etcd.io/etcd/api/v3/version.GitSHA": "lab" }),
      })),
    downloads: ({ version, arch }) => {
      const folder = `etcd-v${version}-linux-${arch}`;
      return [
        {
          url: release("etcd-io/etcd", `v${version}`, `${folder}.tar.gz`),
          body: folderOf(`${folder}/`, ["etcd", "etcdctl", "etcdutl"]),
          sums: [{ url: release("etcd-io/etcd", `v${version}`, "SHA256SUMS"), shape: "lines" }],
        },
      ];
    },
    images: ({ version }) => [
      {
        refs: [`registry.k8s.io/etcd:${version}-0`],
        base: "tiny",
        files: Object.fromEntries(["etcd", "etcdctl", "etcdutl"].map((name) => [`/usr/local/bin/${name}`, name])),
        entrypoint: ["/usr/local/bin/etcd"],
      },
    ],
  },
  containerd: {
    versions: ["2.2.9", "2.2.7"],
    outputs: ({ version }) =>
      CONTAINERD.map((out) => ({
        out,
        goMod: goMod({ modules: { "github.com/containerd/containerd/v2": `v${version}` } }),
        package: `github.com/containerd/containerd/v2/cmd/${out}`,
        tags: `urfave_cli_no_docs,osusergo,netgo,static_build${out === "containerd-shim-runc-v2" ? ",no_grpc" : ""}`,
        ldflags: linker({ "github.com/containerd/containerd/v2/version.Version": `v${version}` }),
      })),
    downloads: ({ version, arch }) =>
      ["containerd", "containerd-static"].map((kind) =>
        summed(
          release("containerd/containerd", `v${version}`, `${kind}-${version}-linux-${arch}.tar.gz`),
          folderOf("bin/", CONTAINERD),
          [".sha256sum", "lines"],
        ),
      ),
  },
  runc: {
    versions: ["1.4.3"],
    packages: {
      "/usr/include/seccomp.h": "libseccomp-dev",
      "/usr/bin/gcc": "gcc",
      "/usr/include/stdlib.h": "libc6-dev",
    },
    outputs: ({ version }) => [
      {
        out: "runc",
        goMod: goMod({ modules: { "github.com/opencontainers/runc": `v${version}` } }),
        package: "github.com/opencontainers/runc",
        tags: "seccomp,urfave_cli_no_docs,netgo,osusergo",
        cgo: true,
        ldflags: linker({}, "-extldflags -static"),
      },
    ],
    downloads: ({ version, arch }) => [
      {
        url: release("opencontainers/runc", `v${version}`, `runc.${arch}`),
        body: "runc",
        sums: [{ url: release("opencontainers/runc", `v${version}`, "runc.sha256sum"), shape: "signed" }],
      },
    ],
  },
  "cni-plugins": {
    versions: ["1.9.1"],
    outputs: ({ version }) =>
      CNI.map((out) => ({
        out,
        goMod: goMod({ modules: { "github.com/containernetworking/plugins": `v${version}` } }),
        package: `github.com/containernetworking/plugins/plugins/${cniKind(out)}/${out}`,
        ldflags: linker({
          "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion": `v${version}`,
        }),
      })),
    downloads: ({ version, arch }) => [
      summed(
        release("containernetworking/plugins", `v${version}`, `cni-plugins-linux-${arch}-v${version}.tgz`),
        folderOf("./", CNI),
        [".sha256", "lines"],
      ),
    ],
  },
  flannel: {
    versions: ["0.28.9"],
    packages: { "/usr/bin/gcc": "gcc", "/usr/include/stdlib.h": "libc6-dev" },
    outputs: ({ version }) => {
      const module = "github.com/flannel-io/flannel";
      const wrapper = goMod({ modules: { [module]: `v${version}` }, replace: { [VPC]: "./vpc" } });
      const files = {
        "vpc/go.mod": `module ${VPC}\n\ngo 1.25.0\n`,
        "vpc/v20170312/vpc.go": VPC_STUB,
      };
      return [
        {
          out: "flanneld",
          goMod: wrapper,
          files,
          package: module,
          cgo: true,
          ldflags: linker({ [`${module}/pkg/version.Version`]: `v${version}` }, "-extldflags -static"),
        },
        { out: "install-conf", goMod: wrapper, files, package: `${module}/cmd/install_conf`, ldflags: linker({}) },
        { out: "kube-flannel.yml", module: `${module}@v${version}`, path: "Documentation/kube-flannel.yml" },
      ];
    },
    downloads: ({ version, arch }) => [
      { url: release("flannel-io/flannel", `v${version}`, "kube-flannel.yml"), body: "kube-flannel.yml", sums: [] },
      { url: release("flannel-io/flannel", `v${version}`, `flanneld-${arch}`), body: "flanneld", sums: [] },
      {
        url: release("flannel-io/flannel", `v${version}`, `flannel-v${version}-linux-${arch}.tar.gz`),
        body: { flanneld: "flanneld" },
        sums: [],
      },
    ],
    images: ({ version }) => [
      {
        refs: ["ghcr.io/flannel-io", "docker.io/flannel"].map((owner) => `${owner}/flannel:v${version}`),
        base: "debian",
        files: { "/opt/bin/flanneld": "flanneld", "/opt/bin/install-conf": "install-conf" },
        entrypoint: ["/opt/bin/flanneld"],
      },
    ],
  },
  "flannel-cni": {
    versions: ["1.9.1-flannel3"],
    outputs: () => [
      {
        out: "flannel",
        // Its own module is not on the Go proxy; this is the last release of the CNI plugins that still held it.
        goMod: goMod({ modules: { "github.com/containernetworking/plugins": "v0.9.1" } }),
        package: "github.com/containernetworking/plugins/plugins/meta/flannel",
        ldflags: linker({ "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion": "v0.9.1" }),
      },
    ],
    downloads: ({ version, arch }) => {
      const at = (file: string) => release("flannel-io/cni-plugin", `v${version}`, file);
      return [
        { url: at(`flannel-${arch}`), body: "flannel", sums: [] },
        summed(at(`cni-plugin-flannel-linux-${arch}-v${version}.tgz`), { [`./flannel-${arch}`]: "flannel" }, [
          ".sha256",
          "lines",
        ]),
      ];
    },
    images: ({ version }) => [
      {
        refs: ["ghcr.io/flannel-io", "docker.io/flannel"].map((owner) => `${owner}/flannel-cni-plugin:v${version}`),
        // The manifest calls cp in it.
        base: "debian",
        files: { "/flannel": "flannel" },
      },
    ],
  },
  crictl: {
    versions: ["1.36.0"],
    outputs: ({ version }) => [
      {
        out: "crictl",
        goMod: goMod({ modules: { "sigs.k8s.io/cri-tools": `v${version}` } }),
        package: "sigs.k8s.io/cri-tools/cmd/crictl",
        ldflags: linker({ "sigs.k8s.io/cri-tools/pkg/version.Version": `v${version}` }),
      },
    ],
    downloads: ({ version, arch }) => [
      summed(
        release("kubernetes-sigs/cri-tools", `v${version}`, `crictl-v${version}-linux-${arch}.tar.gz`),
        { crictl: "crictl" },
        [".sha256", "bare"],
      ),
    ],
  },
  coredns: {
    versions: ["1.14.6"],
    outputs: ({ version }) => [
      {
        out: "coredns",
        goMod: goMod({ modules: { "github.com/coredns/coredns": `v${version}` } }),
        package: "github.com/coredns/coredns",
        tags: "grpcnotrace",
        ldflags: linker({ "github.com/coredns/coredns/coremain.GitCommit": "lab" }),
      },
    ],
    downloads: ({ version, arch }) => [
      summed(
        release("coredns/coredns", `v${version}`, `coredns_${version}_linux_${arch}.tgz`),
        { coredns: "coredns" },
        [".sha256", "lines"],
      ),
    ],
    images: ({ version }) => [
      {
        refs: [`registry.k8s.io/coredns/coredns:v${version}`, `docker.io/coredns/coredns:${version}`],
        base: "tiny",
        files: { "/coredns": "coredns" },
        entrypoint: ["/coredns"],
      },
    ],
  },
  pause: {
    versions: ["3.10.1", "3.10.2", "3.10"],
    packages: { "/usr/bin/gcc": "gcc", "/usr/include/stdlib.h": "libc6-dev" },
    outputs: ({ version }) => [{ out: "pause", c: `#define VERSION "${version}"\n${PAUSE_C}` }],
    images: ({ version }) => [
      {
        refs: [`registry.k8s.io/pause:${version}`],
        base: "tiny",
        files: { "/pause": "pause" },
        entrypoint: ["/pause"],
        user: "65535:65535",
      },
    ],
  },
  registry: {
    versions: ["3.1.2"],
    outputs: ({ version }) => [
      {
        out: "registry",
        goMod: goMod({ modules: { "github.com/distribution/distribution/v3": `v${version}` } }),
        package: "github.com/distribution/distribution/v3/cmd/registry",
        ldflags: linker({ "github.com/distribution/distribution/v3/version.version": `v${version}` }),
      },
    ],
    downloads: ({ version, arch }) => [
      summed(
        release("distribution/distribution", `v${version}`, `registry_${version}_linux_${arch}.tar.gz`),
        { registry: "registry" },
        [".sha256", "lines"],
      ),
    ],
    images: ({ version }) => [
      {
        refs: [`docker.io/library/registry:${version}`],
        base: "tiny",
        files: { "/bin/registry": "registry", "/etc/distribution/config.yml": { text: REGISTRY_CONFIG } },
        entrypoint: ["/bin/registry"],
        cmd: ["serve", "/etc/distribution/config.yml"],
      },
    ],
  },
  crane: {
    versions: ["0.22.1"],
    outputs: ({ version }) => [
      {
        out: "crane",
        goMod: goMod({ modules: { "github.com/google/go-containerregistry": `v${version}` } }),
        package: "github.com/google/go-containerregistry/cmd/crane",
        ldflags: linker({ "github.com/google/go-containerregistry/cmd/crane/cmd.Version": version }),
      },
    ],
    downloads: ({ version, arch }) => {
      const at = (file: string) => release("google/go-containerregistry", `v${version}`, file);
      return [
        {
          url: at(`go-containerregistry_Linux_${arch === "amd64" ? "x86_64" : arch}.tar.gz`),
          body: { crane: "crane" },
          sums: [{ url: at("checksums.txt"), shape: "lines" }],
        },
      ];
    },
  },
  helm: {
    versions: ["3.19.0"],
    outputs: ({ version }) => [
      {
        out: "helm",
        goMod: goMod({ modules: { "helm.sh/helm/v3": `v${version}` } }),
        package: "helm.sh/helm/v3/cmd/helm",
        ldflags: linker({ "helm.sh/helm/v3/internal/version.version": `v${version}`, ...helmKubernetes(version) }),
      },
    ],
    downloads: ({ version, arch }) => [
      summed(
        `get.helm.sh/helm-v${version}-linux-${arch}.tar.gz`,
        { [`linux-${arch}/`]: undefined, [`linux-${arch}/helm`]: "helm" },
        [".sha256sum", "lines"],
        [".sha256", "bare"],
      ),
    ],
  },
  debian: {
    versions: ["bookworm"],
    outputs: () => [],
    images: ({ version }) => [
      { refs: [`docker.io/library/debian:${version}`], base: "debian", files: {}, cmd: ["/bin/bash"] },
    ],
  },
};

function cniKind(name: string): string {
  if (["dhcp", "host-local", "static"].includes(name)) return "ipam";
  return ["bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf"].includes(name) ? "meta" : "main";
}

/** What charts are told when no cluster is asked; Helm 3.19 came with Kubernetes 1.34. */
function helmKubernetes(version: string): Record<string, string> {
  const minor = Number(version.split(".")[1]) + 15;
  return Object.fromEntries(
    ["pkg/chartutil", "pkg/lint/rules"].flatMap((path) => [
      [`helm.sh/helm/v3/${path}.k8sVersionMajor`, "1"],
      [`helm.sh/helm/v3/${path}.k8sVersionMinor`, String(minor)],
    ]),
  );
}
