import type { LabHost } from "../../lab/hosts";
import { labExec } from "../../lab/hosts";
import { isNoise } from "../../lab/noise";

/** What the fault box and its leftovers can touch, seen in a fraction of the time of a whole snapshot. */
const LOOK = String.raw`export LC_ALL=C
places="/etc /srv /opt /usr/local /root /home /tmp"
find $places /var/lib \( -path /var/lib/apt/lists -o -path /var/lib/dpkg \) -prune -o -printf 'file\t%p\t%y %m %u %g %l\n'
find $places -type f -exec sha256sum {} + | sed 's/^\([^ ]*\)  \(.*\)/hash\t\2\t\1/'
dpkg-query -W -f 'package\t$\{Package}\t$\{Version} $\{db:Status-Status}\n'
systemctl list-unit-files --no-legend --no-pager --full | awk '{ print "unit-file\t" $1 "\t" $2 }'
systemctl list-units --type=service --all --plain --no-legend --no-pager --full | awk '$3 != "inactive" { print "unit\t" $1 "\t" $3 }'
printf 'sysctl\tlog_martians\t%s\n' "$(cat /proc/sys/net/ipv4/conf/all/log_martians)"
`.replaceAll("$\\{", "${");

export type QuickState = ReadonlyMap<string, string>;

export async function quickState(host: LabHost): Promise<QuickState> {
  const rows = (await labExec(host, LOOK)).stdout.split("\n").filter(Boolean);
  const parted = rows.map((row) => row.split("\t"));
  const kinds: Readonly<Record<string, string>> = { hash: "file", "unit-file": "unit" };
  return new Map(
    parted
      .filter(([kind = "", name = ""]) => !isNoise(kinds[kind] ?? kind, name))
      .map(([kind = "", name = "", ...value]) => [`${kind} ${name}`, value.join(" ")]),
  );
}

/** One line for each difference; empty when the host is as it was. */
export const changesOf = (before: QuickState, after: QuickState): string =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => before.get(key) !== after.get(key))
    .map((key) => `${key}: ${before.get(key) ?? "(not there)"} → ${after.get(key) ?? "(gone)"}`)
    .join("\n");
