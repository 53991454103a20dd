import { stringify } from "smol-toml";
import { z } from "zod";
import { merge, type Table } from "../config/merge";

export interface ContainerdSettings {
  version: string;
  dataDir: string;
  sandboxImage: string;
  /** Laid over what stands here, key by key. */
  more: Readonly<Record<string, unknown>>;
}

const runc = { runtime_type: "io.containerd.runc.v2", options: { SystemdCgroup: true } };
const registry = { config_path: "/etc/containerd/certs.d" };
const cni = (binaries: Table) => ({ ...binaries, conf_dir: "/etc/cni/net.d" });
const runtimes = { default_runtime_name: "runc", runtimes: { runc } };

/** Until 1.7 one plugin does it all. */
const onePlugin = ({ sandboxImage }: ContainerdSettings) => ({
  "io.containerd.grpc.v1.cri": {
    sandbox_image: sandboxImage,
    containerd: runtimes,
    cni: cni({ bin_dir: "/opt/cni/bin" }),
    registry,
  },
});

const severalPlugins =
  (binaries: Table) =>
  ({ sandboxImage }: ContainerdSettings) => ({
    "io.containerd.cri.v1.images": { pinned_images: { sandbox: sandboxImage }, registry },
    "io.containerd.cri.v1.runtime": { containerd: runtimes, cni: cni(binaries) },
    "io.containerd.transfer.v1.local": registry,
  });

const one = { bin_dir: "/opt/cni/bin" };
const list = { bin_dirs: ["/opt/cni/bin"] };

/** Which form of configuration a version of containerd reads, newest first. */
const forms = [
  { since: [2, 3], version: 4, plugins: severalPlugins(list) },
  { since: [2, 1], version: 3, plugins: severalPlugins(list) },
  { since: [2, 0], version: 3, plugins: severalPlugins(one) },
  { since: [1, 0], version: 2, plugins: onePlugin },
] as const;

const versionParts = z
  .string()
  .regex(/^v?\d+\.\d+\.\d+/)
  .transform((text) => text.replace(/^v/, "").split(".").map(Number));

function formOf(version: string) {
  const [major = 0, minor = 0] = versionParts.parse(version);
  return forms.find(({ since: [a, b] }) => major > a || (major === a && minor >= b)) ?? forms[3];
}

/** Whether one version reads what is written for the other. */
export const readsTheSame = (one: string, other: string): boolean => formOf(one) === formOf(other);

/** containerd's config.toml in the form that this version reads. */
export function containerdConfig(settings: ContainerdSettings): string {
  const form = formOf(settings.version);
  const base = {
    version: form.version,
    root: settings.dataDir,
    state: "/run/containerd",
    plugins: {
      ...form.plugins(settings),
      // Its own default is /opt/containerd, a folder that would stay when containerd goes.
      "io.containerd.internal.v1.opt": { path: `${settings.dataDir}/opt` },
    },
  };
  return `# Managed by kubexm\n${stringify(merge(base, settings.more))}`;
}
