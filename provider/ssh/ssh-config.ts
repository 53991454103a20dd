import { readdirSync, readFileSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { isHome } from "./spec";

/** One keyword of an ssh_config file with the host patterns it stands under (none: all hosts). */
interface Line {
  patterns: readonly string[];
  keyword: string;
  args: readonly string[];
}

/** What ~/.ssh/config says about one host alias; the first value of each keyword wins. */
export interface SshConfigEntry {
  hostName?: string;
  user?: string;
  port?: number;
  /** Paths with their tokens, see {@link expandPath}. */
  identityFiles: readonly string[];
  proxyJump?: readonly string[];
  knownHosts?: readonly string[];
}

const MAX_DEPTH = 16;

/** A file that is written to and never holds anything. */
export const NOWHERE = "/dev/null";

export function expandHome(path: string): string {
  return isHome(path) ? join(homedir(), path.slice(1)) : path;
}

export function globMatch(pattern: string, text: string): boolean {
  if (!/[*?]/.test(pattern)) return pattern.toLowerCase() === text.toLowerCase();
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`, "is").test(text);
}

/** A pattern list as of ssh_config and known_hosts: one `!pattern` that fits refuses, else one pattern must fit. */
export function patternsMatch(patterns: readonly string[], text: string): boolean {
  if (patterns.some((p) => p.startsWith("!") && globMatch(p.slice(1), text))) return false;
  return patterns.some((p) => !p.startsWith("!") && globMatch(p, text));
}

function words(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|(\S+)/g)].map((m) => m[1] ?? m[2] ?? "");
}

function keywordOf(line: string): { keyword: string; args: string[] } | undefined {
  const found = /^\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(.*?)\s*$/.exec(line);
  if (!found?.[1] || found[2] === undefined) return undefined;
  const all = words(found[2]);
  const comment = all.findIndex((word) => word.startsWith("#"));
  return { keyword: found[1].toLowerCase(), args: comment < 0 ? all : all.slice(0, comment) };
}

/** Files named by an Include, with their text; a pattern that fits nothing gives none. */
export type Include = (pattern: string) => readonly string[];

function flatten(text: string, include: Include, outer: readonly string[] | undefined, depth: number): Line[] {
  let patterns: readonly string[] | undefined = outer;
  return text.split(/\r?\n/).flatMap((raw): Line[] => {
    const line = keywordOf(raw);
    if (!line) return [];
    if (line.keyword === "host") {
      // A Host block inside an included file counts only where the Include itself counts.
      patterns = outer === undefined ? undefined : bothMatch(outer, line.args);
      return [];
    }
    if (line.keyword === "match") {
      patterns = undefined;
      return [];
    }
    if (patterns === undefined) return [];
    const here = patterns;
    if (line.keyword === "include" && depth < MAX_DEPTH)
      return line.args.flatMap((arg) => include(arg).flatMap((body) => flatten(body, include, here, depth + 1)));
    return [{ patterns: here, ...line }];
  });
}

/** Nested lists are kept as one list; "&&" parts it, see {@link applies}. */
function bothMatch(outer: readonly string[], inner: readonly string[]): readonly string[] {
  return outer.length === 0 ? inner : [...outer, "&&", ...inner];
}

function applies(patterns: readonly string[], alias: string): boolean {
  if (patterns.length === 0) return true;
  const cut = patterns.lastIndexOf("&&");
  return patternsMatch(patterns.slice(cut + 1), alias) && (cut < 0 || applies(patterns.slice(0, cut), alias));
}

function expandTokens(text: string, tokens: Record<string, string>): string {
  return text.replace(/%(.)/g, (whole, key: string) => tokens[key] ?? whole);
}

/** A path of a config file: its tokens stand for where the login goes in the end, whoever said so. */
export function expandPath(path: string, to: { alias: string; address: string; port: number; user: string }): string {
  const { address: h, alias: n, port, user: r } = to;
  if (!path.includes("%")) return expandHome(path);
  return expandHome(expandTokens(path, { d: homedir(), h, n, p: String(port), r, u: userInfo().username, "%": "%" }));
}

const isNone = (arg: string) => arg.toLowerCase() === "none";
const withoutNone = (args: readonly string[]) => args.filter((arg) => !isNone(arg));

/** The entry for one alias out of the text of a config file. Pure: other files come from `include`. */
export function parseSshConfig(text: string, alias: string, include: Include = () => []): SshConfigEntry {
  const mine = flatten(text, include, [], 0).filter((line) => applies(line.patterns, alias));
  const first = (keyword: string) => mine.find((line) => line.keyword === keyword)?.args;
  const hostName = first("hostname")?.[0];
  const user = first("user")?.[0];
  const port = Number(first("port")?.[0]);
  const jump = first("proxyjump")?.join(",").split(",").filter(Boolean);
  const knownHosts = first("userknownhostsfile");
  const host = hostName && expandTokens(hostName, { h: alias, "%": "%" });
  return {
    ...(host && { hostName: host }),
    ...(user && { user }),
    ...(Number.isInteger(port) && port > 0 && port < 65536 && { port }),
    identityFiles: withoutNone(mine.filter((l) => l.keyword === "identityfile").flatMap((l) => l.args)),
    ...(jump && { proxyJump: withoutNone(jump) }),
    ...(knownHosts && { knownHosts: knownHosts.map((arg) => (isNone(arg) ? NOWHERE : arg)) }),
  };
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** Paths that fit an absolute pattern with `*` and `?`, in order (Node 20 has no glob). */
function glob(pattern: string): string[] {
  return pattern
    .split("/")
    .slice(1)
    .reduce<string[]>(
      (folders, part) =>
        folders.flatMap((folder) =>
          /[*?]/.test(part)
            ? entries(folder || "/")
                .filter((name) => globMatch(part, name))
                .map((name) => `${folder}/${name}`)
            : [`${folder}/${part}`],
        ),
      [""],
    );
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function sshConfigFor(alias: string, folder = join(homedir(), ".ssh")): SshConfigEntry {
  const include: Include = (pattern) => {
    const path = expandHome(pattern);
    return glob(isAbsolute(path) ? path : join(folder, path)).map(readOr);
  };
  return parseSshConfig(readOr(join(folder, "config")), alias, include);
}
