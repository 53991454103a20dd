import type { Mirror } from "./mirror/serve.js";

/** What the mirror builds, where the catalogue's choice for Kubernetes is another. */
export const KUBERNETES_VERSION = "v1.35.4";
const CONTAINERD = "2.2.9";

const REGISTRIES = ["registry.k8s.io", "ghcr.io", "docker.io"];

/**
 * Parts of a cluster.yaml for hosts that are containers: all of them ordinary options. They share the machine's kernel and
 * disk, may not raise their own rank with the OOM killer, and on older machines have control groups of version 1.
 */
export function labKubernetes(): Record<string, unknown> {
  return {
    version: KUBERNETES_VERSION,
    containerRuntime: {
      containerd: { config: { plugins: { "io.containerd.cri.v1.runtime": { restrict_oom_score_adj: true } } } },
    },
    kubeletConfiguration: {
      failCgroupV1: false,
      failSwapOn: false,
      // A full disk of the machine is no reason to delete images in the middle of a run.
      imageGCHighThresholdPercent: 100,
      evictionHard: { "nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi" },
    },
    kubeProxyConfiguration: { conntrack: { maxPerCore: 0, min: 0 } },
    ignorePreflightErrors: ["SystemVerification", "Mem", "NumCPU", "Swap"],
  };
}

/** The same, with everything from the lab's mirror, which rebuilds what upstream publishes. */
export function labKubernetesFrom({ urls, caPath }: Pick<Mirror, "urls" | "caPath">): Record<string, unknown> {
  const { containerRuntime, ...rest } = labKubernetes();
  const { containerd } = containerRuntime as { containerd: object };
  return {
    kubernetes: { ...rest, containerRuntime: { containerd: { version: CONTAINERD, ...containerd } } },
    mirrors: {
      files: [{ url: urls.https, ownChecksums: true, caPath }],
      images: REGISTRIES.map((registry) => ({ registry, url: `https://${urls.registry}`, caPath })),
    },
  };
}
