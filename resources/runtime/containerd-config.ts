import { stringify } from "smol-toml";
import { formOf } from "../config/containerd-form";
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
const onePlugin = ({ sandboxImage }: ContainerdSettings, binaries: Table) => ({
  "io.containerd.grpc.v1.cri": {
    sandbox_image: sandboxImage,
    containerd: runtimes,
    cni: cni(binaries),
    registry,
  },
});

const severalPlugins = ({ sandboxImage }: ContainerdSettings, binaries: Table) => ({
  "io.containerd.cri.v1.images": { pinned_images: { sandbox: sandboxImage }, registry },
  "io.containerd.cri.v1.runtime": { containerd: runtimes, cni: cni(binaries) },
  "io.containerd.transfer.v1.local": registry,
});

const plugins = { one: onePlugin, several: severalPlugins };
const folders = { bin_dir: { bin_dir: "/opt/cni/bin" }, bin_dirs: { bin_dirs: ["/opt/cni/bin"] } };

/** containerd's config.toml in the form that this version reads. */
export function containerdConfig(settings: ContainerdSettings): string {
  const form = formOf(settings.version);
  const base = {
    version: form.version,
    root: settings.dataDir,
    state: "/run/containerd",
    plugins: {
      ...plugins[form.plugins](settings, folders[form.folders]),
      // Its own default is /opt/containerd, a folder that would stay when containerd goes.
      "io.containerd.internal.v1.opt": { path: `${settings.dataDir}/opt` },
    },
  };
  return `# Managed by kubexm\n${stringify(merge(base, settings.more))}`;
}
