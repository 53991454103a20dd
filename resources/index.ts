/** All components, one line each. */
export { Chrony } from "./chrony";
export { HostsFile } from "./hosts-file";
export { Kernel } from "./kernel";
export { Packages } from "./packages";
export { Timezone } from "./timezone";
