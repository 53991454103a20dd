import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Lab, type LabHost, labClusterYaml } from "../lab/hosts.js";
import { labKubernetesFrom } from "../lab/kubernetes.js";
import { balancerService, mirrorService } from "../lab/service.js";
import { run } from "../toolchain/process.js";
import type { Fetched } from "./floor.js";
import { OWN_PACKAGES, withBenchLab } from "./hosts.js";
import { type Taken, measured } from "./measure.js";
import { root } from "./root.js";

const NAME = "bench-cluster";
const main = join(root, "dist", "cli", "main.js");

export interface Shape {
  masters: readonly string[];
  workers: readonly string[];
  /** Hosts that are there and come in later, as workers. */
  spare: readonly string[];
}

/** Fresh hosts of a shape, with all that a cluster needs around it. */
export interface Site {
  lab: Lab;
  shape: Shape;
  folder: string;
  host: (name: string) => LabHost;
  /** The cluster's file, with the spare hosts or without. */
  write: (grown: boolean) => void;
  kubexm: (...args: string[]) => Promise<Taken>;
  /** Forgets an earlier cluster of the name, and brings all files. */
  fetch: () => Promise<Fetched[]>;
}

export const allOf = ({ masters, workers, spare }: Shape) => [...masters, ...workers, ...spare];

export const titleOf = ({ masters, workers }: Shape) => `${masters.length}+${workers.length}`;

/** Every use gets hosts that nobody has used before. */
export function withSite<T>(cwd: string, shape: Shape, use: (site: Site) => Promise<T>): Promise<T> {
  return withBenchLab({ name: NAME, cwd, hosts: allOf(shape), packages: OWN_PACKAGES }, async (lab) => {
    const host = (name: string) => {
      const found = lab.hosts.find((one) => one.name === name);
      if (!found) throw new Error(`no host ${name}`);
      return found;
    };
    const mirror = await mirrorService(lab);
    const before = shape.masters.map((name) => host(name).address);
    const balancer = before.length > 1 ? await balancerService(lab, before) : undefined;
    const file = join(cwd, "cluster.yaml");
    const home = join(cwd, ".kubexm", NAME);
    const write = (grown: boolean) => {
      const workers = [...shape.workers, ...(grown ? shape.spare : [])];
      const hosts = [...shape.masters, ...workers].map(host);
      const parts = {
        ...labKubernetesFrom(mirror),
        ...(balancer && { controlPlaneEndpoint: { externalLoadBalancer: "external", lb_address: balancer.address } }),
        roleGroups: { etcd: shape.masters, master: shape.masters, worker: workers },
      };
      writeFileSync(file, labClusterYaml({ ...lab, hosts }, parts), { mode: 0o600 });
    };
    const command = ([verb = "", ...args]: readonly string[]) => [main, verb, "-f", file, ...args];
    return use({
      lab,
      shape,
      folder: cwd,
      host,
      write,
      kubexm: (...args) => measured({ command: process.execPath, args: command(args) }, cwd),
      fetch: async () => {
        rmSync(home, { recursive: true, force: true });
        write(false);
        const { stdout } = await run(process.execPath, command(["fetch", "--json"]), { cwd });
        return (JSON.parse(stdout) as { files: Fetched[] }).files;
      },
    });
  });
}
