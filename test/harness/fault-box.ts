import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Lab, LabHost } from "../../lab/hosts";
import { component } from "../../provider/component";
import { Secret, sh } from "../../provider/shell";
import * as steps from "../../provider/steps";

const localFile = z.object({ path: z.string(), sha256: z.string() }).strict();

const args = z.object({
  version: z.string(),
  program: localFile,
  archive: localFile,
  secret: z.string().default("nothing"),
  packages: z.array(z.string()).default([]),
  /** Where the program goes. */
  folder: z.string().default("/usr/local/bin"),
  /** Seconds that making and undoing takes longer. */
  pause: z.number().default(0),
});

export type FaultBoxArgs = z.output<typeof args>;

/** A component of many kinds of steps, over things that are there and things that are not. */
export const FaultBox = component({
  kind: "FaultBox",
  about: "What the fault tests put on hosts.",
  args,
  secrets: ["secret"],
  steps: ({ version, program, archive, secret, packages, folder, pause }) => {
    const conf = steps.file("/etc/kxf/deep/conf", `version ${version}\n`);
    const service = steps.file(
      "/etc/systemd/system/kxf.service",
      "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
    );
    const wait = sh`sleep ${pause}`;
    return [
      ...(packages.length > 0 ? [steps.packages(packages)] : []),
      steps.user("kxf"),
      conf,
      steps.file("/etc/kxf.key", new Secret(secret), { mode: "0600" }),
      steps.file("/etc/kxf.over", `over ${version}\n`),
      steps.block("/etc/kxf.env", "kxf", `version=${version}`),
      steps.directory("/srv/kxf/folder", { mode: "0711", owner: "daemon:daemon" }),
      steps.symlink("/srv/kxf.link", "/srv/kxf/folder"),
      steps.sysctl("/etc/sysctl.d/99-kxf.conf", { "net.ipv4.conf.all.log_martians": 1 }),
      steps.binary(`${folder}/kxf-tool`, program, { probe: { args: [], says: "tool" } }),
      steps.archive("/opt/kxf", archive, { strip: 1 }),
      service,
      steps.unit("kxf.service", { enabled: true, running: true, restartOn: [conf, service] }),
      steps.command("a marker", {
        run: sh`${wait} && touch /srv/kxf.marker`,
        doneWhen: sh`test -e /srv/kxf.marker`,
        undo: sh`${wait} && rm -f /srv/kxf.marker`,
      }),
    ];
  },
});

/** Makes the host interesting before; part of what has to come back. */
export const given =
  "printf old >/etc/kxf.over; chmod 604 /etc/kxf.over; printf 'mine=1' >/etc/kxf.env; ln -sfn old /srv/kxf.link; mkdir -p /opt/kxf; echo mine >/opt/kxf/b";

/** Exits 0 when all of it is there, and nothing half done beside it. */
export const holds = (version: string, folder = "/usr/local/bin") => `set -e
id kxf >/dev/null; grep -qx 'version ${version}' /etc/kxf/deep/conf; grep -qx 'over ${version}' /etc/kxf.over
grep -qx mine=1 /etc/kxf.env; grep -qx 'version=${version}' /etc/kxf.env; test -s /etc/kxf.key
test "$(stat -c %a:%U /srv/kxf/folder)" = 711:daemon; test "$(readlink /srv/kxf.link)" = /srv/kxf/folder
test "$(cat /proc/sys/net/ipv4/conf/all/log_martians)" = 1
test "$(${folder}/kxf-tool)" = tool; test "$(cat /opt/kxf/b)" = b1; test -e /opt/kxf/sub/a
systemctl is-active -q kxf.service; systemctl is-enabled -q kxf.service; test -e /srv/kxf.marker
test -z "$(find /etc /srv /opt /usr/local /var/lib/kubexm/staging -name '.kubexm*' 2>/dev/null)"`;

const summed = (path: string) => ({ path, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") });

/** The program and the archive that the box brings along. */
export function boxFiles(scratch: string): Pick<FaultBoxArgs, "program" | "archive"> {
  const tree = join(scratch, "tree", "top");
  mkdirSync(join(tree, "sub"), { recursive: true });
  writeFileSync(join(tree, "b"), "b1\n");
  writeFileSync(join(tree, "sub", "a"), "a1\n");
  execFileSync("tar", ["-czf", join(scratch, "pack.tgz"), "-C", join(scratch, "tree"), "top"]);
  writeFileSync(join(scratch, "tool"), `#!/bin/sh\necho tool\nexit\n${"# filling\n".repeat(20_000)}`);
  return { program: summed(join(scratch, "tool")), archive: summed(join(scratch, "pack.tgz")) };
}

/** How the provider is told to reach a lab host, and what the resource is called. */
export function place(lab: Pick<Lab, "knownHostsPath">, host: LabHost, name = "box", stack = "faults") {
  const { address, user, privateKeyPath, password, sudoPassword } = host;
  return {
    host: {
      name: host.name,
      address,
      user,
      ...(privateKeyPath !== undefined && { privateKeyPath }),
      ...(password !== undefined && { password }),
      ...(sudoPassword !== undefined && { sudoPassword }),
      knownHostsPath: lab.knownHostsPath,
      connectTimeout: 3,
    },
    resource: { name, urn: `urn:pulumi:${stack}::kubexm::dynamic/kubexm:FaultBox::${name}` },
  };
}
