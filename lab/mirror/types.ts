export type Arch = "amd64" | "arm64";

/** What a recipe may depend on: nothing of the machine but its processor. */
export interface Target {
  version: string;
  arch: Arch;
}

/** A program out of Go modules. */
export interface GoProgram {
  out: string;
  /** More names of the same file (symbolic links beside it). */
  names?: readonly string[];
  goMod: string;
  package: string;
  files?: Record<string, string>;
  tags?: string;
  ldflags?: string;
  cgo?: boolean;
}

/** A static program of one C file. */
export interface CProgram {
  out: string;
  c: string;
}

/** A file that lies ready in a module. */
export interface ModuleFile {
  out: string;
  module: string;
  path: string;
}

export type Output = GoProgram | CProgram | ModuleFile;

/** How upstream writes a checksum file: the hash alone; `hash  name` lines; such lines inside a signed text. */
export type SumShape = "bare" | "lines" | "signed";

export interface Sum {
  url: string;
  shape: SumShape;
}

/** A file for download at its upstream address (without https://). */
export interface Download {
  url: string;
  /** An output as it is, or an archive: name inside → output (undefined: a folder). */
  body: string | Record<string, string | undefined>;
  sums: readonly Sum[];
}

export interface Image {
  /** Full upstream references. */
  refs: readonly string[];
  /** `tiny`: an empty system with /tmp and the users root and nobody; `debian`: a shell and the tools that set up networks. */
  base: "tiny" | "debian";
  /** Path in the image → output, or the text itself. */
  files: Record<string, string | { text: string }>;
  entrypoint?: readonly string[];
  cmd?: readonly string[];
  user?: string;
}

export interface Part {
  /** What has been tried, the usual one first; any other published version may be asked for. */
  versions: readonly [string, ...string[]];
  /** Debian packages that the build needs beside Go. */
  packages?: Record<string, string>;
  outputs: (target: Target) => readonly Output[];
  downloads?: (target: Target) => readonly Download[];
  images?: (target: Target) => readonly Image[];
  /** A command of this part that prints the image references it will ask for; they are published too, whatever is in them. */
  expects?: (target: Target) => readonly [string, ...string[]];
}
