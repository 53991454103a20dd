import { mkdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { fetchFile, sourcesFor, wantedFile, type Wanted } from "../artifacts/index.js";
import { neededFiles } from "../resources/modules/files.js";
import { messageOf } from "../toolchain/errors.js";
import { fileFlags } from "./file-flags.js";
import { CLUSTER_DIR, homeOf } from "./home.js";
import { screen } from "./screen.js";
import { clusterOf } from "./stack-config.js";

const HELP = `kubexm fetch [-f cluster.yaml] [--json]: bring all files of a cluster to this machine; no host is touched

  -f, --file VALUE           the cluster file (cluster.yaml)
      --json                 print the files as JSON

exit code: 0 all are here, 1 some cannot be had (the others are brought)`;

const BAR = 24;
const megabytes = (bytes: number) => Math.round(bytes / 1e6);

interface Row {
  file: Wanted;
  state: "waiting" | "coming" | "ended";
  received: number;
  total?: number | undefined;
}

const label = ({ name, version, arch }: Wanted) => `${name} ${version} ${arch}`;

/** How far a file is: a bar, as far as its length is known. */
export function bar({ received, total }: Pick<Row, "received" | "total">): string {
  if (total === undefined) return `${megabytes(received)} MB`;
  const full = Math.round((BAR * received) / Math.max(1, total));
  return `[${"#".repeat(full)}${".".repeat(BAR - full)}] ${megabytes(received)} of ${megabytes(total)} MB`;
}

function lines(rows: readonly Row[]): string[] {
  const coming = rows.filter(({ state }) => state === "coming");
  const waiting = rows.filter(({ state }) => state === "waiting");
  const width = Math.max(0, ...coming.map(({ file }) => label(file).length));
  return [
    ...coming.map((row) => `${label(row.file).padEnd(width)}  ${bar(row)}`),
    ...(waiting.length > 0 ? [`waiting: ${waiting.map(({ file }) => label(file)).join(", ")}`] : []),
  ];
}

interface Brought {
  name: string;
  version: string;
  arch: string;
  sha256: string;
  path: string;
}

/** `kubexm fetch`: what `up` would download, ahead of time. */
export async function fetchCommand(argv: readonly string[]): Promise<number> {
  const { file, json, help } = fileFlags("fetch", argv);
  if (help) {
    console.log(HELP);
    return 0;
  }
  const { name, spec } = await clusterOf(file);
  const { dir } = homeOf(name, file);
  // As `up` makes it: its state comes into this folder.
  await mkdir(dir, { recursive: true, mode: 0o700 });
  process.env[CLUSTER_DIR] = dir;
  const needed = spec.kubernetes.type === "none" ? [] : neededFiles(spec);
  const sources = await sourcesFor(spec, needed);
  const since = Date.now();
  const rows = needed.map((id): Row => ({ file: wantedFile(id, sources), state: "waiting", received: 0 }));
  const view = screen();
  const say = (line: string) => {
    if (!json) view.print(line);
  };
  view.live(() => lines(rows));

  const bring = async (row: Row): Promise<Brought> => {
    const { sha256, place, ...id } = row.file;
    const path = join(dir, place);
    try {
      await fetchFile(row.file, say, (received, total) => Object.assign(row, { state: "coming", received, total }));
      const { size } = await stat(path);
      const how = row.state === "coming" ? "" : ", was here already";
      say(`${label(row.file)}: ${megabytes(size)} MB${how}: ${relative(process.cwd(), path)}`);
      return { name: id.name, version: id.version, arch: id.arch, sha256, path };
    } finally {
      row.state = "ended";
    }
  };
  const ended = await Promise.allSettled(rows.map(bring));
  view.end();
  const files = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failures = ended.flatMap((one) => (one.status === "rejected" ? [messageOf(one.reason)] : []));
  for (const failure of new Set(failures)) console.error(failure);
  const seconds = ((Date.now() - since) / 1000).toFixed(1);
  if (json) console.log(JSON.stringify({ dir, files }, null, 2));
  else console.log(`${files.length} of ${rows.length} files are here (${seconds} s)`);
  return failures.length > 0 ? 1 : 0;
}
