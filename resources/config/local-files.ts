import { dirname, resolve } from "node:path";

/** Keys whose values name files of this machine. */
const KEYS = ["privateKeyPath", "knownHostsPath", "caPath", "caFile", "certFile", "keyFile", "imageArchives"];

const isHome = (path: string) => path === "~" || path.startsWith("~/");

function placed(folder: string, value: unknown, local: boolean): unknown {
  if (typeof value === "string") return local && !isHome(value) ? resolve(folder, value) : value;
  if (Array.isArray(value)) return value.map((item) => placed(folder, item, local));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, placed(folder, item, KEYS.includes(key))] as const),
  );
}

/** A file that is named without its folder stands beside the cluster file: the provider works in a folder of its own. */
export const besideFile = <T>(file: string, spec: T): T => placed(dirname(resolve(file)), spec, false) as T;
