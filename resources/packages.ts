import { z } from "zod";
import { component } from "../provider/component";
import type { OsProfile } from "../provider/os";
import { packages } from "../provider/steps";

const enterprise = ["rhel", "centos", "rocky", "almalinux"];
const release = ({ version }: OsProfile) => Number.parseInt(version, 10);

/** Where a package is called otherwise than among its relatives; asked for by the old name it would never seem installed. */
const renamed: readonly { name: string; is: string; on: (os: OsProfile) => boolean }[] = [
  { name: "ebtables", is: "iptables-ebtables", on: (os) => enterprise.includes(os.id) && release(os) === 8 },
  {
    name: "ebtables",
    is: "iptables-nft",
    on: (os) => ["fedora", "amzn"].includes(os.id) || (enterprise.includes(os.id) && release(os) > 8),
  },
];

const names = (family: string) =>
  z.array(z.string().min(1)).default([]).describe(`Names on ${family} and its relatives; name=version for a version`);

export const Packages = component({
  kind: "Packages",
  about: "Packages a host needs, by its own package manager. On destroy only those go that were not there before.",
  args: z.object({ debs: names("Debian"), rpms: names("RHEL") }),
  steps: ({ debs, rpms }, { os }) => {
    const own = (name: string) => renamed.find((row) => row.name === name && row.on(os))?.is ?? name;
    const wanted = [...new Set((os.packageManager === "apt" ? debs : rpms).map(own))].map((entry) => entry.split("="));
    const pinned = wanted.flatMap(([name = "", version]) =>
      version === undefined ? [] : [packages([name], { version })],
    );
    return [packages(wanted.flatMap(([name = "", version]) => (version === undefined ? [name] : []))), ...pinned];
  },
});
