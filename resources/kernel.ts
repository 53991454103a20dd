import { z } from "zod";
import { component } from "../provider/component";
import { modules, parameters } from "../provider/steps";

/** What systemd-detect-virt says of containers. */
const containers = ["docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz", "container-other"];

export const Kernel = component({
  kind: "Kernel",
  about:
    "Kernel modules and parameters, now and after every boot. In a container only those of its network: the rest is the machine's.",
  args: z.object({
    modules: z.array(z.string().min(1)).describe("Modules to load"),
    sysctl: z.record(z.string(), z.union([z.string(), z.number()])).describe("Parameters and their values"),
  }),
  steps: (args, { virtualisation }) => [
    modules("/etc/modules-load.d/kubexm.conf", args.modules),
    parameters("/etc/sysctl.d/99-kubexm-cri.conf", args.sysctl, { container: containers.includes(virtualisation) }),
  ],
});
