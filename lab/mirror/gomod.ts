export interface Wrapper {
  /** The language version that the wrapper starts from; `go` raises it when a module asks for more. */
  go?: string;
  modules: Record<string, string>;
  replace?: Record<string, string>;
}

/** Text of a go.mod that does nothing but name the modules a program is built from. */
export function goMod({ go = "1.25.0", modules, replace = {} }: Wrapper): string {
  const block = (word: string, lines: string[]) =>
    lines.length === 0 ? [] : [`${word} (`, ...lines.map((line) => `\t${line}`), ")", ""];
  return [
    "module kubexm.lab/part",
    "",
    `go ${go}`,
    "",
    ...block(
      "require",
      Object.entries(modules).map(([path, version]) => `${path} ${version}`),
    ),
    ...block(
      "replace",
      Object.entries(replace).map(([path, to]) => `${path} => ${to}`),
    ),
  ].join("\n");
}

/** `-X` settings for the linker, stripped. */
export const linker = (settings: Record<string, string>, more = "") =>
  ["-s -w", ...Object.entries(settings).map(([name, value]) => `-X ${name}=${value}`), more].join(" ").trimEnd();
