import { parseArgs } from "node:util";
import { USUAL_FILE } from "../resources/config/read.js";
import { UsageError, understood } from "../toolchain/errors.js";

const OPTIONS = {
  file: { type: "string", short: "f", default: USUAL_FILE },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** The flags of the verbs that only tell something about a cluster file. */
export function fileFlags(verb: string, argv: readonly string[], { json = true, misused = 2 } = {}) {
  const refuse = (reason: string) =>
    new UsageError(`kubexm ${verb}: ${reason}; flags are --file ${json ? "--json " : ""}--help`, misused);
  const values = understood(
    () => parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: false }).values,
    refuse,
  );
  if (values.json && !json) throw refuse("Unknown option '--json'");
  return values;
}
