import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { ArgumentError } from "../provider/errors";
import type { Mirror } from "./sources";

export const ARCHES = ["amd64", "arm64"] as const;
export type Arch = (typeof ARCHES)[number];

export const FILES = [
  ...(["kubeadm", "kubelet", "kubectl", "containerd"] as const),
  ...(["runc", "cni-plugins", "crictl", "etcd"] as const),
] as const;
export type FileName = (typeof FILES)[number];

/** One file of one version for one architecture; versions without v. */
export interface FileId {
  name: FileName;
  version: string;
  arch: string;
}

interface Row {
  from: string;
  etcd: string;
  leastEtcd: string;
  coredns: string;
  pause: string;
  containerd: string;
  leastContainerd: string;
}

interface Catalogue {
  files: Record<FileName, { url: string; sums: string; folder: string }>;
  kubernetes: Row[];
  containerdTested: Record<string, string[]>;
  common: { runc: string; cniPlugins: string; crictl: string; flannel: string; flannelCni: string };
  images: string[];
  zones: Record<string, { files: { url: string; replaces?: string }[]; images: { registry: string; url: string }[] }>;
}

type Checksums = Record<FileName, Record<string, Partial<Record<Arch, string>>>>;

const folder = join(__dirname, "..", "..", "artifacts");

/** Read when first needed: most runs of the provider need no file. */
function onFirstUse<T>(read: () => T): () => T {
  let kept: T | undefined;
  return () => (kept ??= read());
}

const data = (name: string): unknown => parse(readFileSync(join(folder, name), "utf8"));

const catalogue = onFirstUse(() => data("catalogue.yaml") as Catalogue);
const checksums = onFirstUse(() => data("checksums.yaml") as Checksums);

export const bare = (version: string) => version.replace(/^v/, "");
const numbers = (version: string) => bare(version).split(/[.-]/).map(Number);
export const minorOf = (version: string) => numbers(version).slice(0, 2).join(".");

/** Whether `a` is older than `b`; what follows a third number does not count. */
export function older(a: string, b: string): boolean {
  const [x, y] = [numbers(a), numbers(b)];
  const at = [0, 1, 2].find((i) => (x[i] ?? 0) !== (y[i] ?? 0));
  return at !== undefined && (x[at] ?? 0) < (y[at] ?? 0);
}

const byAge = (a: string, b: string) => (older(a, b) ? -1 : 1);

/** The Kubernetes minors there are, oldest first: 1.34 … */
export const minors = (): string[] => [...new Set(catalogue().kubernetes.map(({ from }) => minorOf(from)))];

/** What belongs to a Kubernetes version, if its minor is known. */
export const rowOf = (kubernetes: string): Row | undefined =>
  catalogue().kubernetes.findLast(({ from }) => minorOf(from) === minorOf(kubernetes) && !older(kubernetes, from));

/** The first tested patch releases of containerd's minors for a Kubernetes version, as far as that is published. */
export const testedContainerd = (kubernetes: string): string[] | undefined =>
  catalogue().containerdTested[minorOf(kubernetes)];

/** The newest etcd that any Kubernetes here brings. */
export const newestEtcd = (): string =>
  catalogue()
    .kubernetes.map(({ etcd }) => etcd)
    .sort(byAge)
    .at(-1) ?? "";

export const common = () => catalogue().common;
export const imageNames = () => catalogue().images;

export const presetMirrors = (zone: string): Mirror[] =>
  (catalogue().zones[zone]?.files ?? []).map((row) => ({ ...row, ownChecksums: false }));

export const presetImageMirrors = (zone: string) => catalogue().zones[zone]?.images ?? [];

export const fill = (text: string, values: Readonly<Record<string, string>>) =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);

/** Versions of a file whose checksums are pinned, oldest first. */
export const pinnedVersions = (name: FileName): string[] => Object.keys(checksums()[name]).sort(byAge);

export const pinned = ({ name, version, arch }: FileId): string | undefined =>
  checksums()[name][version]?.[arch as Arch];

export interface Upstream {
  url: string;
  sums: string;
  /** Below the folder of a cluster. */
  folder: string;
}

const isArch = (arch: string): arch is Arch => (ARCHES as readonly string[]).includes(arch);

/** Where upstream has a file. Refuses what upstream does not build. */
export function upstream({ name, version, arch }: FileId): Upstream {
  if (!isArch(arch))
    throw new ArgumentError(arch, `there is no ${name} for this processor; there is ${ARCHES.join(" and ")}`);
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    throw new ArgumentError(
      version,
      `is not a version of ${name}; write for example ${pinnedVersions(name).at(-1) ?? ""}`,
    );
  const { url, sums, folder } = catalogue().files[name];
  const filled = (text: string) => fill(text, { name, version, arch });
  return { url: filled(url), sums: filled(sums), folder: filled(folder) };
}
