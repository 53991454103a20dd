import type * as pulumi from "@pulumi/pulumi";
import { imagesFor, versionsFor, type Sources } from "../../artifacts";
import type { ClusterSpec, Role } from "../config";
import { Containerd } from "../containerd";
import { Images, type ImageArchive } from "../images";
import { KubernetesPrograms } from "../kubernetes-programs";
import { archOf, type PreparedMachine, type ReadyMachine, type Surroundings } from "./host";
import { clientsOf, loginsOf, type registriesOf } from "./registries";

export interface EquipmentSettings extends Surroundings {
  sources: pulumi.Input<Sources>;
  /** Where images come from; certificates are read from this machine, once for all hosts. */
  registries: ReturnType<typeof registriesOf>;
  /** Images that need not be pulled. */
  archives: pulumi.Input<ImageArchive[]>;
}

const onMastersOnly = /\/(kube-apiserver|kube-controller-manager|kube-scheduler|etcd):/;

/** Images that a host with these roles will start containers from. */
const imagesOf = (spec: ClusterSpec, roles: readonly Role[]): string[] =>
  imagesFor(versionsFor(spec)).filter((image) => roles.includes("master") || !onMastersOnly.test(image));

/**
 * What a node needs before its turn to join has come: a container runtime, the images in it, and Kubernetes' programs. Files come
 * while packages and clocks are seen to; registries are asked when clocks are right.
 */
export function equip(machine: PreparedMachine, settings: EquipmentSettings): ReadyMachine {
  const { host, roles, forget, ready, basis } = machine;
  const { cluster, spec, sources, registries, archives, opts } = settings;
  if (!roles.includes("master") && !roles.includes("worker")) return machine;
  const { kubernetes, containerd: version, runc, crictl, cniPlugins, pause } = versionsFor(spec);
  const { config, existing } = spec.kubernetes.containerRuntime.containerd;
  const runtime = new Containerd(
    `${cluster}-${host.name}-containerd`,
    {
      host,
      forget,
      version,
      runc,
      crictl,
      cniPlugins,
      ...archOf(machine),
      sources,
      sandboxImage: `registry.k8s.io/pause:${pause}`,
      dataDir: spec.registry.containerdDataDir,
      registries,
      logins: loginsOf(spec),
      clients: clientsOf(spec),
      config,
      existing,
    },
    { ...opts, dependsOn: [...basis] },
  );
  const images = new Images(
    `${cluster}-${host.name}-images`,
    { host, forget, images: imagesOf(spec, roles), archives },
    { ...opts, dependsOn: [...ready, runtime] },
  );
  const programs = new KubernetesPrograms(
    `${cluster}-${host.name}-programs`,
    { host, forget, version: kubernetes, ...archOf(machine), sources },
    { ...opts, dependsOn: [...basis] },
  );
  return { ...machine, ready: [...ready, runtime, images, programs] };
}
