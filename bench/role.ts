import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The work that every tool does: twelve operations that prepare a host, of which a fresh one needs ten. All tools get the same
 * bytes, and put them at the same places, the ones kubexm's own components use.
 */
export const ROLE = {
  package: "sudo",
  marker: "KubeXM Managed Block",
  parameter: "net.ipv4.tcp_keepalive_time",
  value: 600,
  usual: 7200,
  folder: "/etc/bench-agent",
  unit: "bench-agent.service",
  standing: "ssh.service",
} as const;

export interface RoleFile {
  /** Its name among the files that are handed to the tools. */
  name: string;
  path: string;
  mode: string;
  content: string;
}

const PROGRAM_BYTES = 64 * 1024;

/** A program of 64 KiB that starts: two lines, and bytes that the shell never comes to. */
function program(): string {
  const start = "#!/bin/sh\nexec sleep infinity\n";
  const noise = Array.from({ length: PROGRAM_BYTES / 64 + 1 }, (_, i) =>
    createHash("sha256").update(`${i}`).digest("hex"),
  );
  return (start + noise.join("")).slice(0, PROGRAM_BYTES);
}

export const FILES = {
  modules: {
    name: "modules",
    path: "/etc/modules-load.d/kubexm.conf",
    mode: "0644",
    content: "# Managed by kubexm\n",
  },
  sysctl: {
    name: "sysctl",
    path: "/etc/sysctl.d/99-kubexm-cri.conf",
    mode: "0644",
    content: `# Managed by kubexm\n${ROLE.parameter} = ${ROLE.value}\n`,
  },
  config: {
    name: "config",
    path: `${ROLE.folder}/agent.conf`,
    mode: "0640",
    content: Array.from({ length: 40 }, (_, i) => `setting_${i} = value ${i}\n`).join(""),
  },
  defaults: {
    name: "defaults",
    path: "/etc/default/bench-agent",
    mode: "0644",
    content: "AGENT_OPTIONS=--quiet\n",
  },
  unit: {
    name: "unit",
    path: `/etc/systemd/system/${ROLE.unit}`,
    mode: "0644",
    content:
      "[Unit]\nDescription=Bench agent\n[Service]\nEnvironmentFile=/etc/default/bench-agent\n" +
      "ExecStart=/usr/local/bin/bench-agent\n[Install]\nWantedBy=multi-user.target\n",
  },
  program: { name: "program", path: "/usr/local/bin/bench-agent", mode: "0755", content: program() },
} as const satisfies Record<string, RoleFile>;

const all: readonly RoleFile[] = Object.values(FILES);

type Named = { hosts: readonly { name: string; address: string }[] };

export const hostsLines = ({ hosts }: Named): string[] =>
  hosts.map(({ name, address }) => `${address} ${name}.bench.local ${name}`);

export const hostsBlock = (lab: Named): string =>
  hostsLines(lab)
    .map((line) => `${line}\n`)
    .join("");

export const sha256 = (content: string): string => createHash("sha256").update(content).digest("hex");

/** Fails, saying where, unless a host is as the role wants it. One exec of it is the least a tool can need. */
export function checkScript(block: string): string {
  const sums = all.map(({ path, content }) => `${sha256(content)}  ${path}`);
  const modes = all.map(({ path, mode }) => `${mode.slice(1)} root:root ${path}`);
  return `export LC_ALL=C
fail() { echo "not as wanted: $1" >&2; exit 1; }
[ "$(dpkg-query -W -f '\${db:Status-Status}' ${ROLE.package})" = installed ] || fail package
[ "$(stat -c '%a %U:%G %F' ${ROLE.folder})" = '755 root:root directory' ] || fail folder
sha256sum --quiet -c - <<'END' || fail content
${sums.join("\n")}
END
[ "$(stat -c '%a %U:%G %n' ${all.map(({ path }) => path).join(" ")})" = '${modes.join("\n")}' ] || fail mode
[ "$(sed -n '/^# BEGIN ${ROLE.marker}$/,/^# END ${ROLE.marker}$/p' /etc/hosts | sed '1d;$d' | sha256sum)" = '${sha256(block)}  -' ] || fail hosts
[ "$(cat /proc/sys/${ROLE.parameter.replaceAll(".", "/")})" = ${ROLE.value} ] || fail parameter
[ "$(systemctl show -p UnitFileState,ActiveState --value ${ROLE.unit} ${ROLE.standing} | tr '\\n' ' ')" = 'active enabled  active enabled ' ] || fail units
`;
}

/** What somebody would write who knows that the host is fresh: the least work that makes it so. */
export function makeScript(block: string): string {
  const put = ({ path, mode, content }: RoleFile) =>
    `put ${path} ${mode} <<'END'\n${Buffer.from(content).toString("base64").replaceAll(/.{76}/g, "$&\n")}\nEND`;
  return `set -e
export LC_ALL=C
put() { base64 -d >"$1.new"; chmod "$2" "$1.new"; mv -f "$1.new" "$1"; }
[ "$(dpkg-query -W -f '\${db:Status-Status}' ${ROLE.package})" = installed ] || apt-get install -y ${ROLE.package}
mkdir -p ${ROLE.folder}
${all.map(put).join("\n")}
{ sed '/^# BEGIN ${ROLE.marker}$/,/^# END ${ROLE.marker}$/d' /etc/hosts; cat <<'END'
# BEGIN ${ROLE.marker}
${block}# END ${ROLE.marker}
END
} >/etc/hosts.new
mv -f /etc/hosts.new /etc/hosts
sysctl -q -w ${ROLE.parameter}=${ROLE.value}
systemctl daemon-reload
systemctl enable -q --now ${ROLE.unit} ${ROLE.standing}
`;
}

/** Makes a host fresh again, whichever tool was there. */
export const RESET = `
systemctl disable -q --now ${ROLE.unit} 2>/dev/null
rm -rf ${all.map(({ path }) => path).join(" ")} ${ROLE.folder} /var/lib/kubexm /root/.ansible
sed -i '/^# BEGIN ${ROLE.marker}$/,/^# END ${ROLE.marker}$/d' /etc/hosts
sysctl -q -w ${ROLE.parameter}=${ROLE.usual}
systemctl daemon-reload
systemctl reset-failed
`;

/** The files for tools that take them from a folder; its path. */
export function writeFiles(folder: string, block: string): string {
  mkdirSync(folder);
  for (const { name, content } of all) writeFileSync(join(folder, name), content);
  writeFileSync(join(folder, "hosts-block"), block);
  return folder;
}
