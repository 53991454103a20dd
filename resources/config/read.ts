import { readFileSync } from "node:fs";
import { UnreadableError } from "./problems";

/** What is read where no file is named. */
export const USUAL_FILE = "cluster.yaml";

const MOST_BYTES = 32 * 1024 * 1024;

/** The text of a cluster file, or one line that tells why it cannot be had. */
export function readCluster(path: string): string {
  const cannot = (why: string, advice: string) => new UnreadableError(`${path}: ${why}; ${advice}`);
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const why: Readonly<Record<string, string>> = {
      ENOENT: "there is no such file",
      EACCES: "it may not be read",
      EISDIR: "it is a folder",
    };
    throw cannot(why[code] ?? `it cannot be read (${code})`, "name the cluster file with -f");
  }
  if (bytes.length > MOST_BYTES)
    throw cannot(`it is larger than ${MOST_BYTES >> 20} MiB`, "name a cluster file with -f");
  return bytes.toString("utf8");
}

const PLAIN_NAME = /^metadata:[ \t]*\r?\n[ ]+name:[ ]+([a-z][a-z0-9-]*)[ \t]*\r?\n(?:[ \t]*\r?\n)*(?=[a-z])/m;
/** Where there is more than one document, or key of this name, the parser says which counts. */
const SEVERAL = /\n(---|\.\.\.)|^\W?metadata\b[^]*\n\W?metadata\b/m;
/** What YAML takes for something else than text. */
const WORDS = ["true", "false", "null"];

/**
 * The cluster's name where it stands as in nearly every file, alone below `metadata`; what begins a line of YAML is in no text of
 * several lines. For those who need no more of the file than that: its parser takes as long as to look at a host.
 */
export function plainName(text: string): string | undefined {
  const name = PLAIN_NAME.exec(text)?.[1];
  return name === undefined || WORDS.includes(name) || SEVERAL.test(text) ? undefined : name;
}
