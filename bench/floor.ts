import { chmodSync, copyFileSync, linkSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab, LabHost } from "../lab/hosts.js";
import { labExec } from "../lab/hosts.js";
import { labKubernetes } from "../lab/kubernetes.js";
import { joinConfiguration } from "../resources/kubernetes/kubeadm-config.js";
import { run } from "../toolchain/process.js";
import type { Tool } from "./measure.js";
import { KEX } from "./peers.js";
import { root } from "./root.js";

/** What kubexm wrote on a host and a script that knows everything beforehand may take as it is. */
const CONFIGURATION = [
  ...["etc/hosts", "etc/crictl.yaml", "etc/containerd", "etc/kubernetes/kubexm.yaml", "etc/kubernetes/kubelet.conf.d"],
  ...["etc/modules-load.d/kubexm.conf", "etc/sysctl.d/99-kubexm-cri.conf"],
  ...["etc/systemd/system/containerd.service", "etc/systemd/system/kubelet.service"],
  "etc/systemd/system/kubelet.service.d",
];

/** A host as kubexm made it. */
export interface Pattern {
  /** A tar archive of its configuration, in base64. */
  etc: string;
  images: string[];
  /** What was applied from it to the cluster. */
  objects: string;
}

/** Names as people write them, of all the names containerd has for an image. */
export const imagesIn = (list: string): string[] =>
  list.split("\n").filter((name) => name !== "" && !name.startsWith("sha256:") && !name.includes("@"));

export async function patternOf(host: LabHost): Promise<Pattern> {
  const told = async (script: string) => (await labExec(host, script)).stdout;
  return {
    etc: await told(`cd / && tar -cf - $(ls -d ${CONFIGURATION.join(" ")} 2>/dev/null) | base64`),
    images: imagesIn(await told("/usr/local/bin/ctr -n k8s.io images ls -q")),
    objects: await told("find /var/lib/kubexm/ledger -name objects.yaml -exec cat {} +"),
  };
}

/** A downloaded file, as `kubexm fetch --json` tells it. */
export interface Fetched {
  name: string;
  sha256: string;
  path: string;
}

/** A program that goes by several names is needed once. */
export const distinct = (files: readonly Fetched[]): Fetched[] =>
  files.filter(({ sha256 }, i) => files.findIndex((file) => file.sha256 === sha256) === i);

export interface Kit {
  folder: string;
  patterns: Readonly<Record<string, Pattern>>;
  files: readonly Fetched[];
  packages: readonly string[];
  masters: readonly string[];
  /** The first three numbers of the addresses of the hosts that were the pattern. */
  network: string;
}

export const networkOf = ({ hosts }: Pick<Lab, "hosts">) => (hosts[0]?.address ?? "").replace(/\d+$/, "");

/** All files of a folder, with other addresses in them. */
function moveTo(folder: string, from: string, to: string): void {
  if (from === to) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) writeFileSync(path, readFileSync(path, "utf8").replaceAll(from, to));
  }
}

function give(path: string, to: string): void {
  try {
    linkSync(path, to);
  } catch {
    copyFileSync(path, to);
  }
}

async function writeHost(lab: Lab, host: LabHost, kit: Kit): Promise<void> {
  const { etc, images, objects } = kit.patterns[host.name] ?? { etc: "", images: [], objects: "" };
  const folder = join(kit.folder, host.name);
  const tree = join(kit.folder, `${host.name}-etc`);
  for (const dir of [folder, tree]) mkdirSync(dir);
  await run("tar", ["-C", tree, "-xf", "-"], { input: Buffer.from(etc, "base64") });
  moveTo(tree, kit.network, networkOf(lab));
  await run("tar", ["-C", tree, "-cf", join(folder, "etc.tar"), "--owner=0", "--group=0", "etc"]);
  for (const { name, path } of distinct(kit.files)) give(path, join(folder, name));
  const master = kit.masters.includes(host.name);
  const first = kit.masters[0] ?? "";
  const endpoint = endpointIn(Buffer.from(kit.patterns[first]?.etc ?? "", "base64").toString());
  const texts = {
    "host.sh": readFileSync(join(root, "bench", "floor-host.sh"), "utf8"),
    packages: kit.packages.join("\n"),
    images: images.join("\n"),
    "objects.yaml": objects,
    "join.yaml": joinConfiguration({
      name: host.name,
      tainted: master,
      ignored: labKubernetes()["ignorePreflightErrors"] as string[],
      endpoint,
      ...(master && { local: { address: host.address, port: 6443 } }),
    }),
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  chmodSync(folder, 0o700);
}

/** Name and port by which all reach the API servers, from a master's kubeadm configuration. */
export const endpointIn = (text: string): string => /^controlPlaneEndpoint: (\S+)$/m.exec(text)?.[1] ?? "";

/** What lies ready for each host when the clock starts. */
export async function writeKit(lab: Lab, kit: Kit): Promise<void> {
  mkdirSync(kit.folder, { mode: 0o700 });
  await Promise.all(lab.hosts.map((host) => writeHost(lab, host, kit)));
}

export interface Joining {
  /** Whether the first master begins the cluster, or has it already. */
  begin: boolean;
  first: string;
  /** Those that join. */
  masters: readonly string[];
  workers: readonly string[];
}

export const floorTool = (lab: Lab, kit: string, { begin, first, masters, workers }: Joining): Tool => ({
  command: "sh",
  args: [join(root, "bench", "floor.sh")],
  env: {
    KIT: kit,
    SSH_CONFIG: lab.sshConfig,
    KEX,
    BEGIN: begin ? "yes" : "no",
    FIRST: first,
    MASTERS: masters.join(" "),
    WORKERS: workers.join(" "),
  },
});
