import {
  ConfigError,
  UnreadableError,
  judgeCluster,
  problemText,
  readCluster,
  type Problem,
} from "../resources/config/index.js";
import { fileFlags } from "./file-flags.js";

const HELP = `kubexm validate [-f cluster.yaml] [--json]: tell everything that is wrong with a cluster file; no host is touched

  -f, --file VALUE           the cluster file (cluster.yaml)
      --json                 print the problems as JSON

exit code: 0 nothing is wrong (there may be warnings), 1 there are problems, 2 the file cannot be read`;

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

function text(file: string, problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const counts = `${plural(errors, "problem")}, ${plural(problems.length - errors, "warning")}`;
  return [...problems.map((problem) => problemText(file, problem)), `${file}: ${counts}`].join("\n");
}

/** A file that cannot be used, as a program that asked for JSON reads it. */
export const unusableJson = (file: string, error: UnreadableError | ConfigError): string => {
  const why = error instanceof UnreadableError ? { unreadable: error.message } : { problems: error.problems };
  return JSON.stringify({ file, ok: false, ...why }, null, 2);
};

function unreadable(file: string, json: boolean, error: UnreadableError): number {
  if (json) console.log(unusableJson(file, error));
  else console.error(error.message);
  return 2;
}

/** `kubexm validate`: the problems of a cluster file. Values of a stack's configuration are taken as right. */
export async function validateCommand(argv: readonly string[]): Promise<number> {
  const { file, json, help } = fileFlags("validate", argv);
  if (help) {
    console.log(HELP);
    return Promise.resolve(0);
  }
  try {
    const { problems } = judgeCluster(readCluster(file), { env: process.env, config: "later" });
    const ok = problems.every(({ severity }) => severity !== "error");
    console.log(json ? JSON.stringify({ file, ok, problems }, null, 2) : text(file, problems));
    return ok ? 0 : 1;
  } catch (error) {
    if (error instanceof UnreadableError) return unreadable(file, json, error);
    throw error;
  }
}
