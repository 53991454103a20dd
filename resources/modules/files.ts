import * as pulumi from "@pulumi/pulumi";
import { sourcesFor, versionsFor, type FileId, type Sources } from "../../artifacts";
import type { ClusterSpec } from "../config";
import type { ImageArchive } from "../images";
import { readImageArchive } from "./image-archives";

/** The files that a cluster's nodes need, for the architectures of its hosts. */
export function neededFiles(spec: ClusterSpec): FileId[] {
  const { kubernetes, containerd, runc, crictl, cniPlugins } = versionsFor(spec);
  const arches = [...new Set(spec.hosts.map(({ arch = "amd64" }) => arch))];
  const files = [
    { name: "kubeadm", version: kubernetes },
    { name: "kubelet", version: kubernetes },
    { name: "kubectl", version: kubernetes },
    { name: "containerd", version: containerd },
    { name: "runc", version: runc },
    { name: "crictl", version: crictl },
    { name: "cni-plugins", version: cniPlugins },
  ] as const;
  return arches.flatMap((arch) => files.map((file) => ({ ...file, arch })));
}

/** Where they come from. */
export const filesOf = (spec: ClusterSpec): pulumi.Output<Sources> =>
  pulumi.output(sourcesFor(spec, neededFiles(spec)));

const readArchives = ({ mirrors }: ClusterSpec): Promise<ImageArchive[]> =>
  Promise.all(mirrors.imageArchives.map(readImageArchive));

export const archivesOf = (spec: ClusterSpec): pulumi.Output<ImageArchive[]> => pulumi.output(readArchives(spec));

/** Finds out what cannot be had of all this, while it can still be told. */
export async function tryFiles(spec: ClusterSpec): Promise<void> {
  await Promise.all([sourcesFor(spec, neededFiles(spec)), readArchives(spec)]);
}
