import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Lab, type LabHost, labExec } from "../lab/hosts.js";
import { inOrder } from "../test/harness/pool.js";
import { ANSWERED } from "../resources/chrony.js";
import { OWN_PACKAGES } from "./hosts.js";

const MODULES = "/etc/modules-load.d/kubexm.conf";
const SYSCTL = "/etc/sysctl.d/99-kubexm-cri.conf";
const HOSTNAME = "/etc/hostname";
const CHRONY = "/etc/chrony/chrony.conf";
const ZONE = "/etc/timezone";
const FILES = [MODULES, SYSCTL, HOSTNAME, CHRONY, ZONE];
const MARKER = "KubeXM Managed Block";
const PACKAGES = [...OWN_PACKAGES, "tzdata"];

const FRESH = "/var/tmp/bench-fresh.tar";
/** What of a fresh host readiness changes; the other files are new. */
const CHANGED = ["/etc/hosts", "/etc/localtime", HOSTNAME, CHRONY, ZONE].map((path) => path.slice(1));

export const SAVE = `tar -C / -cf ${FRESH} ${CHANGED.join(" ")}\n`;

/** Makes a host fresh again, whichever tool was there. */
export const RESET = `set -e
rm -rf ${MODULES} ${SYSCTL} /var/lib/kubexm /root/.ansible
tar -C / --unlink-first -xf ${FRESH}
systemctl restart chrony
systemctl reset-failed
`;

export type Parameter = readonly [name: string, value: string];

/** Those that a container has of its own, of a file of sysctl's. */
export const networkParameters = (text: string): Parameter[] =>
  [...text.matchAll(/^(net\.\S+) *= *(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]);

export const linesOf = (text: string): string[] =>
  text.split("\n").filter((line) => line !== "" && !/^[#;]/.test(line));

const procPath = (name: string) => `/proc/sys/${name.replaceAll(".", "/")}`;

/** Some need a module that a container cannot load. */
export const present = (parameters: readonly Parameter[], paths: string): Parameter[] =>
  parameters.filter(([name]) => paths.split("\n").includes(procPath(name)));

/** What a host is, as far as readiness goes, in as few processes as a script can do with. */
export const stateScript = (modules: readonly string[], parameters: readonly Parameter[]): string => `export LC_ALL=C
sha256sum ${FILES.join(" ")}
stat -c '%a %U:%G %n' ${FILES.join(" ")}
readlink /etc/localtime
sed -n '/^# BEGIN ${MARKER}$/,/^# END ${MARKER}$/p' /etc/hosts
dpkg-query -W -f '\${Package} \${db:Status-Status}\\n' ${PACKAGES.join(" ")}
systemctl show -p Id,UnitFileState,ActiveState chrony
# Not with read: of a parameter it gets the first character.
grep . ${["/proc/sys/kernel/hostname", "/proc/swaps", ...parameters.map(([name]) => procPath(name))].join(" ")}
for module in ${modules.join(" ")}; do
  [ ! -d "/sys/module/$module" ] || echo "module $module"
done
`;

/** Fails, with the difference, unless a host is in a state. One exec of it is the least a tool can need. */
export const checkScript = (script: string, state: string): string => `state() {
${script}}
wanted=$(cat <<'END'
${state.trimEnd()}
END
)
found=$(state)
[ "$found" = "$wanted" ] || { printf 'wanted:\\n%s\\nfound:\\n%s\\n' "$wanted" "$found" >&2; exit 1; }
`;

/** As kubexm sees it, for all tools: by its own clock where it serves, else by the first answer of who does. */
export const IN_STEP = `chronyc -n tracking | grep -q '^Leap status *: Normal' || chronyc -c -n sources | grep -q '${ANSWERED}'`;

/** Hosts as kubexm made them ready. */
export interface Ready {
  modules: string[];
  parameters: Parameter[];
  /** The check of each host, by its name. */
  checks: Readonly<Record<string, string>>;
  /** What is on every host, by its name for the tools. */
  common: Readonly<Record<string, string>>;
  /** What is on one host only, by its address. */
  own: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const told = async (host: LabHost, script: string) => (await labExec(host, script)).stdout;
const read = async (host: LabHost, path: string) =>
  Buffer.from(await told(host, `base64 ${path}`), "base64").toString();

/** Each host is read after it was made ready, by whomever. */
export async function readyFrom({ hosts }: Pick<Lab, "hosts">): Promise<Ready> {
  const [first] = hosts;
  if (!first) throw new Error("no hosts");
  const sysctl = await read(first, SYSCTL);
  const modules = linesOf(await read(first, MODULES));
  const parameters = present(networkParameters(sysctl), await told(first, "find /proc/sys/net -type f"));
  const script = stateScript(modules, parameters);
  const all = await inOrder(hosts, 8, async (host) => ({
    host,
    state: await told(host, script),
    files: { hostname: await read(host, HOSTNAME), "chrony.conf": await read(host, CHRONY) },
  }));
  const [, ...block] = (await read(first, "/etc/hosts")).split(new RegExp(`^# (?:BEGIN|END) ${MARKER}\n`, "m"));
  return {
    modules,
    parameters,
    checks: Object.fromEntries(all.map(({ host, state }) => [host.name, checkScript(script, state)])),
    common: {
      modules: await read(first, MODULES),
      sysctl,
      timezone: await read(first, ZONE),
      "hosts-block": block[0] ?? "",
    },
    own: Object.fromEntries(all.map(({ host, files }) => [host.address, files])),
  };
}

/** What other tools need to make the same of fresh hosts, in a folder, and each host's check beside it. */
export function writeReady(folder: string, { modules, parameters, checks, common, own }: Ready) {
  const write = (dir: string, texts: Readonly<Record<string, string>>) => {
    mkdirSync(dir);
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(dir, name), text);
    return dir;
  };
  const words = { packages: PACKAGES, modules, inStep: IN_STEP, parameters: Object.fromEntries(parameters) };
  const files = write(folder, { ...common, "ready.json": JSON.stringify(words) });
  for (const [address, texts] of Object.entries(own)) write(join(folder, address), texts);
  const floor = write(join(folder, "checks"), checks);
  return { files, floorOf: (host: string) => join(floor, host) };
}
