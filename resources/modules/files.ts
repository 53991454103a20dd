import * as pulumi from "@pulumi/pulumi";
import { ARCHES, sourcesFor, versionsFor, type FileId, type Sources } from "../../artifacts";
import type { ClusterSpec } from "../config";
import type { ImageArchive } from "../images";
import { readImageArchive } from "./image-archives";

/** What comes with a containerd that is adopted. */
const ADOPTED: readonly string[] = ["containerd", "runc"];

function filesFor(spec: ClusterSpec, arches: readonly string[]): FileId[] {
  const { kubernetes, containerd, runc, crictl, cniPlugins } = versionsFor(spec);
  const all = [
    { name: "kubeadm", version: kubernetes },
    { name: "kubelet", version: kubernetes },
    { name: "kubectl", version: kubernetes },
    { name: "containerd", version: containerd },
    { name: "runc", version: runc },
    { name: "crictl", version: crictl },
    { name: "cni-plugins", version: cniPlugins },
  ] as const;
  const adopts = spec.kubernetes.containerRuntime.containerd.existing === "adopt";
  const files = adopts ? all.filter(({ name }) => !ADOPTED.includes(name)) : all;
  return arches.flatMap((arch) => files.map((file) => ({ ...file, arch })));
}

const archesOf = ({ hosts }: ClusterSpec) => [...new Set(hosts.map(({ arch = "amd64" }) => arch))];

/** The files that a cluster's nodes need, for the architectures of its hosts. */
export const neededFiles = (spec: ClusterSpec): FileId[] => filesFor(spec, archesOf(spec));

/** Those that they need, too, where a host whose architecture nobody wrote turns out to be another than most are. */
export function perhapsFiles(spec: ClusterSpec): FileId[] {
  const known = archesOf(spec);
  const others = spec.hosts.some(({ arch }) => arch === undefined)
    ? ARCHES.filter((arch) => !known.includes(arch))
    : [];
  return filesFor(spec, others);
}

const gather = (spec: ClusterSpec): Promise<Sources> => sourcesFor(spec, neededFiles(spec), perhapsFiles(spec));

/** Where they come from. */
export const filesOf = (spec: ClusterSpec): pulumi.Output<Sources> => pulumi.output(gather(spec));

const readArchives = ({ mirrors }: ClusterSpec): Promise<ImageArchive[]> =>
  Promise.all(mirrors.imageArchives.map(readImageArchive));

export const archivesOf = (spec: ClusterSpec): pulumi.Output<ImageArchive[]> => pulumi.output(readArchives(spec));

/** Finds out what cannot be had of all this, while it can still be told. */
export async function tryFiles(spec: ClusterSpec): Promise<void> {
  await Promise.all([gather(spec), readArchives(spec)]);
}
