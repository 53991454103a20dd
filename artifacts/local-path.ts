import { homedir } from "node:os";
import { resolve } from "node:path";

/** A path that cluster.yaml names on this machine. */
export const localPath = (written: string): string => resolve(written.replace(/^~(?=\/)/, homedir()));
