import { type LabHost, labExec } from "./host.js";
import { UNSEEN, isNoise } from "./noise.js";

/** A host's state: kind → name → what is so. */
export type Snapshot = Record<string, Record<string, string>>;

export interface Difference {
  kind: string;
  name: string;
  before?: string;
  after?: string;
}

const prune = Object.keys(UNSEEN)
  .map((path) => `-path ${path}`)
  .join(" -o ");

/**
 * Everything in one go. Records end with NUL, because a file's name may hold anything else: `kind TAB name TAB value`, then
 * files as `type mode owner TAB target TAB path`, then hashes as b2sum writes them, in half of the time of sha256sum.
 */
const LOOK = String.raw`
export LC_ALL=C
as() { sed "s/^/$1\t/" | tr '\n' '\0'; }
{
dpkg-query -W -f '\${binary:Package}\t\${Version} \${db:Status-Status}\n' | as package
apt-mark showhold | as hold
apt-mark showmanual | as manual
systemctl list-unit-files --no-legend --no-pager --full | awk '{ print $1 "\t" $2 }' | as unit-file
systemctl list-units --all --plain --no-legend --no-pager --full | awk '$3 != "inactive" { print $1 "\t" $3 " " $4 }' | as unit
sysctl -a 2>/dev/null | sed 's/ = */\t/' | as sysctl
awk '{ for (i = 7; $i != "-"; i++); print $5 "\t" $(i + 1) " " $(i + 2) " " $6 }' /proc/self/mountinfo | as mount
awk 'NR > 1 { print $1 "\t" $2 " " $3 " priority " $5 }' /proc/swaps | as swap
sed 's/:[^:]*:/\t/' /etc/passwd | as user
sed 's/:[^:]*:/\t/' /etc/group | as group
cut -d: -f1,2 /etc/shadow | while IFS=: read -r name hash; do
  printf '%s\t%s\n' "$name" "$(printf %s "$hash" | sha256sum | cut -c1-12)"
done | as password
nft -s list ruleset 2>/dev/null | awk '
  /^table/ { table = $2 " " $3; print table; next }
  /^\t[a-z]+ .* \{$/ { part = $1 " " $2; print table " " part; next }
  /^\t\t/ { sub(/^\t+/, ""); gsub(/\t/, " "); print table " " part ": " $0 }' | as firewall
for save in iptables-legacy-save ip6tables-legacy-save; do
  $save 2>/dev/null | grep -v '^#' | sed "s/ \[[0-9:]*\]$//; s/^/$save /" | as firewall
done
for family in 4 6; do
  ip -$family route show table all | sed 's/ expires [^ ]*//; s/ *$//' | as route
  ip -$family rule show | sed "s/^/IPv$family /" | as rule
done
ip -o link show | sed 's/^[0-9]*: //; s/@if[0-9]*:/:/; s/ link-netnsid [0-9]*//; s/: */\t/; s/\\ */ /g' | as link
ip -o address show | sed 's/^[0-9]*: *//; s/ *\\.*//' | tr -s ' ' | as address
ss -Hlntu | awk '{ print $1 " " $5 }' | sort -u | as port
cut -d' ' -f1 /proc/modules | as module
{
  printf 'hostname\t%s\n' "$(hostname)"
  printf 'timezone\t%s\n' "$(date +%Z) $(readlink /etc/localtime)"
  printf 'default target\t%s\n' "$(systemctl get-default)"
} | as system
printf 'FILES\0'
list=$(mktemp -p /run)
find / \( ${prune} \) -prune -o -printf '%y %m %u:%g\t%l\t%p\0' -type f -fprint0 "$list"
printf 'HASHES\0'
xargs -0 -r b2sum -l 256 -z -- <"$list"
rm "$list"
} 2>/dev/null
`.replaceAll("\\${", "${");

const TYPES: Record<string, string> = {
  f: "file",
  d: "folder",
  l: "link",
  b: "block device",
  c: "character device",
  p: "pipe",
  s: "socket",
};

function add(into: Snapshot, kind: string, name: string, value: string): void {
  if (isNoise(kind === "unit-file" ? "unit" : kind, name)) return;
  const names = (into[kind] ??= {});
  // Two equal firewall rules are one more than one.
  let key = name;
  for (let i = 2; key in names; i++) key = `${name} #${i}`;
  names[key] = value;
}

/** What the script printed, as data. */
export function parseSnapshot(text: string): Snapshot {
  const records = text.split("\0");
  const files = records.indexOf("FILES");
  const hashes = records.indexOf("HASHES", files);
  if (files < 0 || hashes < 0) throw new Error("the host was not looked at to the end");
  const snapshot: Snapshot = {};
  for (const record of records.slice(0, files)) {
    const [kind = "", name = "", ...value] = record.split("\t");
    if (name !== "") add(snapshot, kind, name, value.join(" "));
  }
  const hash = new Map(
    records.slice(hashes + 1).map((record) => {
      const [sum = "", ...path] = record.split(/ [ *]/);
      return [path.join("  "), sum];
    }),
  );
  for (const record of records.slice(files + 1, hashes)) {
    const [meta = "", target = "", ...rest] = record.split("\t");
    const path = rest.join("\t");
    const [type = "", mode, owner] = meta.split(" ");
    // A link's own mode means nothing.
    const rights = type === "l" ? `→ ${target}` : `${mode ?? ""} ${owner ?? ""}`;
    add(snapshot, "file", path, [TYPES[type] ?? type, rights, hash.get(path)].filter(Boolean).join(" "));
  }
  return snapshot;
}

/** Records a host's state. */
export async function snapshot(host: LabHost): Promise<Snapshot> {
  return parseSnapshot((await labExec(host, LOOK)).stdout);
}

/** What is otherwise than before; nothing when the host is as it was. */
export function compare(before: Snapshot, after: Snapshot): Difference[] {
  const kinds = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return kinds.flatMap((kind) => {
    const [old, now] = [before[kind] ?? {}, after[kind] ?? {}];
    const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort();
    return names
      .filter((name) => old[name] !== now[name] && !isNoise(kind === "unit-file" ? "unit" : kind, name))
      .map((name) => ({
        kind,
        name,
        ...(old[name] !== undefined && { before: old[name] }),
        ...(now[name] !== undefined && { after: now[name] }),
      }));
  });
}

function describe({ kind, name, before, after }: Difference): string {
  const [was, is] = [before || "there", after || "there"];
  if (before === undefined) return `+ ${kind} ${name}${after ? `: ${is}` : ""}`;
  if (after === undefined) return `- ${kind} ${name}${before ? `: ${was}` : ""}`;
  return `~ ${kind} ${name}: ${was} → ${is}`;
}

/** One line a difference: + came, - went, ~ is otherwise. */
export const describeDifferences = (differences: readonly Difference[]) => differences.map(describe).join("\n");
