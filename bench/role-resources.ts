import type { Lab } from "../lab/hosts.js";
import { ROLE, FILES, hostsEntries, sha256 } from "./role.js";

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
  /** By kind: four components, as a cluster would have them; the same on every host. */
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

export function roleJob(lab: Lab, programFile: string): RoleJob {
  return {
    hosts: reach(lab),
    components: {
      Packages: { debs: [ROLE.package] },
      HostsFile: { entries: hostsEntries(lab) },
      Kernel: { modules: [], sysctl: { [ROLE.parameter]: ROLE.value } },
      BenchAgent: { program: { path: programFile, sha256: sha256(FILES.program.content) } },
    },
  };
}
