import { stringify } from "yaml";

/** Read by kubelet after kubeadm's file, so that a change is one file and a restart. */
export const kubeletDropIn = (configuration: Readonly<Record<string, unknown>>): string =>
  stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...configuration });
