import { ArgumentError } from "../provider/errors";
import { bare, common, fill, imageNames, minors, pinnedVersions, rowOf } from "./catalogue";

/** All without v. */
export interface Versions {
  kubernetes: string;
  etcd: string;
  containerd: string;
  runc: string;
  cniPlugins: string;
  crictl: string;
  flannel: string;
  flannelCni: string;
  coredns: string;
  pause: string;
}

/** The part of a cluster's specification that says something about versions. */
export interface VersionSpec {
  kubernetes: {
    version: string;
    containerRuntime: { type: string; version?: string | undefined; containerd: { version?: string | undefined } };
  };
  etcd: { version?: string | undefined };
  network: { flannel: { version?: string | undefined } };
}

/** The versions of a cluster: those that are written, else those that belong to its Kubernetes. */
export function versionsFor({ kubernetes, etcd, network }: VersionSpec): Versions {
  const row = rowOf(kubernetes.version);
  if (row === undefined) {
    const known = minors();
    const newest = pinnedVersions("kubelet").at(-1) ?? "";
    throw new ArgumentError(
      kubernetes.version,
      `kubexm installs Kubernetes ${known[0] ?? ""} to ${known.at(-1) ?? ""}; write for example v${newest}`,
    );
  }
  const { type, version, containerd } = kubernetes.containerRuntime;
  const { coredns, pause } = row;
  return {
    ...common(),
    coredns,
    pause,
    kubernetes: bare(kubernetes.version),
    etcd: bare(etcd.version ?? row.etcd),
    containerd: bare(containerd.version ?? (type === "containerd" ? version : undefined) ?? row.containerd),
    flannel: bare(network.flannel.version ?? common().flannel),
  };
}

/** Full names of the images of a cluster, those of kubeadm as `kubeadm config images list` has them. */
export const imagesFor = (versions: Versions): string[] => imageNames().map((name) => fill(name, { ...versions }));
