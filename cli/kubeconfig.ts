import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../toolchain/errors.js";
import { fileFlags } from "./file-flags.js";
import type { Home } from "./home.js";
import { storedOf } from "./stored.js";

const HELP = `kubexm kubeconfig [-f cluster.yaml]: write the administrator's kubeconfig again, and print where it is

  -f, --file VALUE           the cluster file (cluster.yaml)

It is beside the state, readable by you alone; \`up\` writes it too:
  export KUBECONFIG=$(kubexm kubeconfig)`;

export const kubeconfigPath = ({ dir }: Pick<Home, "dir">) => join(dir, "kubeconfig");

/** Beside it and renamed: a file that is there keeps its rights, which may be wider, and a reader never finds half of one. */
export function writeKubeconfig(home: Pick<Home, "dir">, text: string): string {
  const path = kubeconfigPath(home);
  const fresh = `${path}.tmp-${process.pid}`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { mode: 0o600, flag: "wx" });
  renameSync(fresh, path);
  return path;
}

export async function kubeconfigCommand(argv: readonly string[]): Promise<number> {
  const { file, help } = fileFlags("kubeconfig", argv, { json: false });
  if (help) {
    console.log(HELP);
    return 0;
  }
  const { home, resources } = await storedOf(file);
  const text = resources.find(({ type }) => type.endsWith(":Kubeconfig"))?.outputs["revealed"];
  if (typeof text !== "string" || text === "")
    throw new UserError(`there is no cluster of ${file} yet: kubexm up -f ${file} makes it`);
  console.log(writeKubeconfig(home, text));
  return 0;
}
