/** What differs between families, as data. */
interface Family {
  readonly packageManager: "apt" | "dnf";
  readonly chronyConf: string;
  readonly chronyUnit: string;
  readonly chronyKeys: string;
  readonly chronyDrift: string;
}

const families = {
  debian: {
    packageManager: "apt",
    chronyConf: "/etc/chrony/chrony.conf",
    chronyUnit: "chrony.service",
    chronyKeys: "/etc/chrony/chrony.keys",
    chronyDrift: "/var/lib/chrony/chrony.drift",
  },
  rhel: {
    packageManager: "dnf",
    chronyConf: "/etc/chrony.conf",
    chronyUnit: "chronyd.service",
    chronyKeys: "/etc/chrony.keys",
    chronyDrift: "/var/lib/chrony/drift",
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

/** ID of os-release → family, for those whose ID_LIKE does not say it, or says it wrongly. */
const byId: Readonly<Record<string, FamilyName>> = {
  debian: "debian",
  ubuntu: "debian",
  uos: "debian",
  deepin: "debian",
  rhel: "rhel",
  centos: "rhel",
  rocky: "rhel",
  almalinux: "rhel",
  fedora: "rhel",
  openeuler: "rhel",
  kylin: "rhel",
  anolis: "rhel",
  amzn: "rhel",
};

/** UOS server editions carry the ID of the desktop, which is a Debian; their package manager tells. */
const byPlatform: readonly { id: string; test: RegExp; family: FamilyName }[] = [
  { id: "uos", test: /^PLATFORM_ID="?platform:(uel|uelc)/m, family: "rhel" },
  { id: "uos", test: /^EDITION_NAME="?(Server|Euler|[ae]"?$)/im, family: "rhel" },
];

export interface OsProfile extends Family {
  readonly id: string;
  readonly version: string;
  readonly idLike: readonly string[];
  readonly family: FamilyName;
  readonly name: string;
}

function osRelease(text: string): Record<string, string> {
  const rows = text.split("\n").flatMap((line): [string, string][] => {
    const match = /^([A-Z_]+)=(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(.*))$/.exec(line.trim());
    return match?.[1] === undefined
      ? []
      : [[match[1], (match[2] ?? match[3] ?? match[4] ?? "").replace(/\\(.)/g, "$1")]];
  });
  return Object.fromEntries(rows);
}

/** The profile for an os-release text; a family nobody knows is an error in words. */
export function osProfile(text: string): OsProfile {
  const release = osRelease(text);
  const id = (release["ID"] ?? "").toLowerCase();
  const idLike = (release["ID_LIKE"] ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const family =
    byPlatform.find((row) => row.id === id && row.test.test(text))?.family ??
    [id, ...idLike].map((name) => byId[name]).find((name) => name !== undefined);
  if (family === undefined) {
    throw new Error(
      `operating system ${release["PRETTY_NAME"] ?? (id || "unknown")} is not of the Debian or RHEL family`,
    );
  }
  return {
    ...families[family],
    family,
    id,
    idLike,
    version: release["VERSION_ID"] ?? "",
    name: release["PRETTY_NAME"] ?? id,
  };
}
