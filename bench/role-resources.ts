import type { Lab } from "../lab/hosts.js";
import { ROLE, FILES, hostsBlock, hostsLines, sha256 } from "./role.js";

/** A lab host as kubexm's own host argument. */
export interface Reach {
  name: string;
  address: string;
  user: string;
  privateKeyPath: string;
  knownHostsPath: string;
}

/** What the processes that drive kubexm get to know, as a file. */
export interface RoleJob {
  hosts: Reach[];
  /** By kind; the same on every host. */
  components: Record<string, Record<string, unknown>>;
}

export const reach = (lab: Lab): Reach[] =>
  lab.hosts.map(({ name, address, user }) => ({
    name,
    address,
    user,
    privateKeyPath: lab.privateKeyPath,
    knownHostsPath: lab.knownHostsPath,
  }));

/** The role as one component, and split in four as a cluster would have it. */
export function roleJobs(lab: Lab, programFile: string): { whole: RoleJob; split: RoleJob } {
  const hosts = reach(lab);
  const program = { path: programFile, sha256: sha256(FILES.program.content) };
  return {
    whole: { hosts, components: { BenchRole: { block: hostsBlock(lab), program } } },
    split: {
      hosts,
      components: {
        Packages: { debs: [ROLE.package] },
        HostsFile: { lines: hostsLines(lab) },
        Kernel: { modules: [], sysctl: { [ROLE.parameter]: ROLE.value } },
        BenchAgent: { program },
      },
    },
  };
}
