import { parseArgs } from "node:util";
import { UsageError } from "./usage.js";

const OPTIONS = {
  file: { type: "string", short: "f", default: "cluster.yaml" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** The flags of the verbs that only tell something about a cluster file. */
export function fileFlags(verb: string, argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const [reason = ""] = error instanceof Error ? error.message.split(/\.\s|\n/) : [];
    throw new UsageError(`kubexm ${verb}: ${reason}; flags are --file --json`);
  }
}
