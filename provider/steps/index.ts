export { block } from "./block";
export { command, type CommandOptions } from "./command";
export { directory } from "./directory";
export { file, type FileOptions } from "./file";
export { modules, sysctl } from "./kernel";
export { packages, pkg, type PackageOptions } from "./package";
export { symlink } from "./symlink";
export { render, template } from "./template";
export { unit, type UnitOptions } from "./unit";
