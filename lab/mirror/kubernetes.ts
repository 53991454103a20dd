import { goMod, linker } from "./gomod.js";
import { KUBERNETES_MAIN } from "./sources.js";
import type { GoProgram, Target } from "./types.js";

const STAGING =
  `api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
  code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming csi-translation-lib
  dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy
  kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission streaming`.split(/\s+/);

export const KUBE_IMAGES = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];
export const KUBE_PROGRAMS = ["kubeadm", "kubelet", "kubectl", ...KUBE_IMAGES];

/** The Go release whose behaviour a Kubernetes minor was made for; `go` takes its defaults from it. */
const GO_OF_KUBERNETES: Record<string, string> = { "34": "1.24.0", "35": "1.25.0", "36": "1.26.0" };

/** All of its programs as one, with the version that it is asked to be. */
export function kubernetes({ version }: Target): GoProgram {
  const [, minor = ""] = version.split(".");
  const staging = version.replace(/^1\./, "v0.");
  const about = { gitVersion: `v${version}`, gitMajor: "1", gitMinor: minor, gitTreeState: "clean", gitCommit: "lab" };
  const settings = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((path) =>
    Object.entries(about).map(([name, value]): [string, string] => [`${path}.${name}`, value]),
  );
  return {
    out: "kube",
    names: KUBE_PROGRAMS,
    goMod: goMod({
      go: GO_OF_KUBERNETES[minor] ?? "1.26.0",
      modules: { "k8s.io/kubernetes": `v${version}` },
      // Inside k8s.io/kubernetes these are folders; outside they are published under v0.
      replace: Object.fromEntries(STAGING.map((name) => [`k8s.io/${name}`, `k8s.io/${name} ${staging}`])),
    }),
    files: { "main.go": KUBERNETES_MAIN },
    package: ".",
    ldflags: linker(Object.fromEntries(settings)),
  };
}
