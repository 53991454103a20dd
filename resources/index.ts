/** All components, one line each. */
export { Chrony } from "./chrony";
export { Firewall } from "./firewall";
export { Hostname } from "./hostname";
export { HostsFile } from "./hosts-file";
export { Kernel } from "./kernel";
export { Limits } from "./limits";
export { Packages } from "./packages";
export { Resolver } from "./resolver";
export { SELinux } from "./selinux";
export { Swap } from "./swap";
export { System } from "./modules/system";
export { Timezone } from "./timezone";
