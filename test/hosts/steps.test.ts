import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { anyLabName, labDown, labUp, type LabHost } from "../../lab/hosts";
import { revert } from "../../provider/engine";
import { Secret, quote, sh } from "../../provider/shell";
import { closeAll, connect, hostSpec, type Remote } from "../../provider/ssh";
import * as steps from "../../provider/steps";
import { seeded } from "../harness/seeded";
import { context, converge, leftAsBefore, raw, walk, work, type StepCase } from "../harness/step-cases";

const NAME = anyLabName();
const scratch = mkdtempSync(join(tmpdir(), "kubexm-steps-"));

function local(name: string, body: Buffer | string): steps.LocalFile {
  const path = join(scratch, name);
  writeFileSync(path, body);
  return { path, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") };
}

function tarball(name: string, files: Readonly<Record<string, string>>): steps.LocalFile {
  const dir = mkdtempSync(join(scratch, "tar-"));
  execFileSync("mkdir", ["-p", ...Object.keys(files).map((file) => join(dir, file, ".."))]);
  for (const [file, body] of Object.entries(files)) writeFileSync(join(dir, file), body);
  execFileSync("tar", ["-czf", join(scratch, name), "-C", dir, "."]);
  return {
    path: join(scratch, name),
    sha256: createHash("sha256")
      .update(readFileSync(join(scratch, name)))
      .digest("hex"),
  };
}

const program = local("tool", "#!/bin/sh\necho one\n");
const newer = local("tool2", "#!/bin/sh\necho two\n");
const pack = tarball("pack.tgz", { "top/bin/a": "a1", "top/bin/b": "b1", "top/doc/x": "x1" });
const pack2 = tarball("pack2.tgz", { "top/bin/a": "a2", "top/bin/c": "c2" });
const odd = "quotes ' \" $(touch /tmp/canary) `id` \\ \t ünïcode 中文\nline two\n-dash\nno newline at the end";
const startedWithFile =
  'test "$(date -d "$(systemctl show -P ActiveEnterTimestamp kx.service)" +%s)" -ge "$(stat -c %Y /etc/kx/svc.conf)"';
const conf = steps.file("/etc/kx/svc.conf", "value one\n");
const conf2 = steps.file("/etc/kx/svc.conf", "value two\n");
const service = steps.file(
  "/etc/systemd/system/kx.service",
  "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
);
const reloading = steps.file(
  "/etc/systemd/system/kx.service",
  "[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/cp /etc/kx/svc.conf /run/kx.read\n[Install]\nWantedBy=multi-user.target\n",
);

const random = seeded("odd names");
/** Signs that mean something to a shell, to sed, to tar, to a glob, or to nobody. */
const signs = [
  ...Array.from("ab z-'\"$`\\*?[]{}()<>|&;!#~%=^@:,.+ üÁÈ中🐙\t"),
  ...["$(touch /tmp/canary)", "${HOME}", "--", "-rf ", "%s", "\\1"],
];
function oddText(length: number, also: readonly string[] = []): string {
  const all = [...signs, ...also];
  return Array.from({ length }, () => all[random.below(all.length)]).join("");
}
const oddNames = Array.from({ length: 6 }, (_, i) => `${["-", "", " "][i % 3] ?? ""}${oddText(8)}${i}`);
const oddPath = `/srv/kx/${oddNames[0] ?? ""}`;
const oddBodies = [
  "",
  "\n",
  "-",
  oddText(200, ["\n", "\r", "\u0001"]),
  `${oddText(100, ["\n"])}\n`,
  "x".repeat(1024 * 1024),
];

const cases: readonly StepCase[] = [
  {
    name: `odd names and contents mean nothing (KUBEXM_TEST_SEED=${random.seed})`,
    given: "mkdir /srv/kx",
    steps: oddNames.flatMap((name, i) => [
      steps.file(`/srv/kx/${name}`, oddBodies[i] ?? ""),
      steps.symlink(`/srv/kx/link${i}`, `/srv/kx/${name}`),
      steps.directory(`/srv/kx/dir/${name}`),
      steps.block(`/srv/kx/block ${name}`, `kx ${i}`, oddBodies[i] ?? ""),
    ]),
    holds: oddNames
      .map((name, i) => {
        const sum = createHash("sha256")
          .update(oddBodies[i] ?? "")
          .digest("hex");
        const [file, folder] = [quote(`/srv/kx/${name}`), quote(`/srv/kx/dir/${name}`)];
        return `test "$(sha256sum </srv/kx/link${i})" = "${sum}  -" && test -f ${file} && test -d ${folder}`;
      })
      .concat("test ! -e /tmp/canary", 'test "$(ls -A /srv/kx | wc -l)" -ge 19')
      .join(" && "),
    drifts: [{ by: `echo >>${quote(oddPath)}`, step: `path ${oddPath}`, lines: ["@@ -1,1 +0,0 @@", "-"] }],
  },
  {
    name: "file: new, in folders that were not there",
    steps: [steps.file("/etc/kx/deep/er/file.conf", odd, { mode: "0640", owner: "root:daemon" })],
    holds:
      "test \"$(stat -c %a:%G /etc/kx/deep/er/file.conf)\" = 640:daemon && test ! -e /tmp/canary && grep -q '^line two' /etc/kx/deep/er/file.conf",
    drifts: [
      { by: "echo more >>/etc/kx/deep/er/file.conf", step: "path /etc/kx/deep/er/file.conf" },
      { by: "chmod 600 /etc/kx/deep/er/file.conf", step: "path /etc/kx/deep/er/file.conf" },
      { by: "rm -r /etc/kx", step: "path /etc/kx/deep/er/file.conf" },
    ],
    then: {
      steps: [steps.file("/etc/kx/other.conf", "")],
      holds: "test -e /etc/kx/other.conf && test ! -e /etc/kx/deep",
    },
  },
  {
    name: "file: over one that was there, 1 MB, odd name",
    given:
      "mkdir -p '/etc/a b'; printf old >'/etc/a b/$(x)'; chmod 604 '/etc/a b/$(x)'; touch -d '2001-01-01' '/etc/a b/$(x)'",
    steps: [steps.file("/etc/a b/$(x)", "0123456789abcde\n".repeat(65536))],
    holds: "test \"$(stat -c %s '/etc/a b/$(x)')\" = 1048576",
    drifts: [{ by: "ln -sfn /dev/null '/etc/a b/$(x)'", step: "path /etc/a b/$(x)" }],
  },
  {
    name: "file: secret",
    steps: [steps.file("/etc/kx.key", new Secret("s3cret-canary\n"), { mode: "0600" })],
    holds: "grep -q s3cret /etc/kx.key && ! grep -rqs s3cret-canary /var/lib/kubexm /tmp /run/kubexm.lock",
    drifts: [{ by: "echo x >/etc/kx.key", step: "path /etc/kx.key" }],
  },
  {
    name: "block: in /etc/hosts, a mounted file",
    steps: [steps.block("/etc/hosts", "KubeXM Managed Block", "192.0.2.1 a.example\n")],
    holds: "getent hosts a.example && getent hosts localhost",
    drifts: [
      {
        by: "sed 's/192.0.2.1/192.0.2.9/' /etc/hosts >/tmp/h; cat /tmp/h >/etc/hosts; rm /tmp/h",
        step: "block /etc/hosts KubeXM Managed Block",
        lines: ["@@ -1,1 +1,1 @@", "-192.0.2.9 a.example", "+192.0.2.1 a.example"],
      },
    ],
    then: {
      steps: [steps.block("/etc/hosts", "KubeXM Managed Block", "192.0.2.2 b.example\n")],
      holds: "getent hosts b.example && ! grep -q a.example /etc/hosts",
    },
  },
  {
    name: "block: after a last line without a newline; other people's lines stay",
    given: "printf 'mine=1' >/etc/kx.env",
    steps: [steps.block("/etc/kx.env", "kx", "ours=$HOME`id`")],
    holds: "grep -qx mine=1 /etc/kx.env && grep -qxF 'ours=$HOME`id`' /etc/kx.env",
    drifts: [{ by: "printf 'mine=1' >/etc/kx.env", step: "block /etc/kx.env kx" }],
  },
  {
    name: "directory and symlink",
    given: "mkdir /srv/there; ln -s old /srv/link",
    steps: [
      steps.directory("/srv/new/one", { mode: "0700", owner: "daemon:daemon" }),
      steps.directory("/srv/there", { mode: "0711" }),
      steps.symlink("/srv/link", "/srv/new/one"),
      steps.symlink("/srv/l2", "a b'c"),
    ],
    holds:
      'test "$(stat -c %a:%U /srv/new/one)" = 700:daemon && test "$(stat -c %a /srv/there)" = 711 && test "$(readlink /srv/link)" = /srv/new/one',
    drifts: [
      { by: "rmdir /srv/new/one", step: "path /srv/new/one" },
      { by: "ln -sfn elsewhere /srv/link", step: "path /srv/link" },
    ],
  },
  {
    name: "packages: with what they bring, users and configuration",
    steps: [steps.packages(["chrony", "tree"])],
    holds: "dpkg -s chrony tree >/dev/null && getent passwd _chrony",
    drifts: [{ by: "apt-get purge -yq tree >/dev/null", step: "package tree" }],
    then: { steps: [steps.packages(["tree"])], holds: "dpkg -s tree >/dev/null && ! dpkg -s chrony 2>/dev/null" },
  },
  {
    name: "packages: hold one that was there",
    steps: [steps.pkg("sudo", { hold: true })],
    holds: "apt-mark showhold | grep -qx sudo",
    drifts: [{ by: "apt-mark unhold sudo >/dev/null", step: "package sudo" }],
  },
  {
    name: "unit: of ours, with its file and configuration",
    steps: [conf, service, steps.unit("kx.service", { enabled: true, running: true, restartOn: [conf, service] })],
    holds: `systemctl is-active kx.service && systemctl is-enabled kx.service && ${startedWithFile}`,
    drifts: [
      { by: "echo by hand >/etc/kx/svc.conf; systemctl restart kx.service; sleep 1.1", step: conf.id },
      { by: "systemctl stop kx.service", step: "unit kx.service" },
      { by: "systemctl disable -q kx.service", step: "unit kx.service" },
      { by: "systemctl kill -s KILL kx.service; sleep 0.3", step: "unit kx.service" },
    ],
    then: {
      steps: [conf2, service, steps.unit("kx.service", { enabled: true, running: true, restartOn: [conf2, service] })],
      holds: `systemctl is-active kx.service && grep -q two /etc/kx/svc.conf && ${startedWithFile}`,
    },
  },
  {
    name: "unit: what was started with our files already is not started anew",
    steps: [
      conf,
      service,
      steps.command("somebody starts it", {
        doneWhen: raw("test -s /run/kx.pid"),
        run: raw("systemctl daemon-reload; systemctl start kx; systemctl show -p MainPID --value kx >/run/kx.pid"),
        undo: raw("rm -f /run/kx.pid"),
      }),
      steps.unit("kx.service", { enabled: true, running: true, restartOn: [conf, service] }),
    ],
    holds: 'test "$(systemctl show -p MainPID --value kx)" = "$(cat /run/kx.pid)"',
    drifts: [{ by: "systemctl disable -q kx.service", step: "unit kx.service" }],
    then: {
      steps: [conf2, service, steps.unit("kx.service", { enabled: true, running: true, restartOn: [conf2, service] })],
      holds: 'systemctl is-active kx.service && test "$(systemctl show -p MainPID --value kx)" != "$(cat /run/kx.pid)"',
    },
  },
  {
    name: "unit: told to read its configuration again, and not started anew",
    steps: [conf, reloading, steps.unit("kx.service", { enabled: true, running: true, reloadOn: [conf] })],
    holds: "systemctl show -p MainPID --value kx >/run/kx.pid",
    drifts: [],
    then: {
      steps: [conf2, reloading, steps.unit("kx.service", { enabled: true, running: true, reloadOn: [conf2] })],
      holds:
        'test "$(systemctl show -p MainPID --value kx)" = "$(cat /run/kx.pid)" && test "$(cat /run/kx.read)" = "value two" && rm /run/kx.pid /run/kx.read',
    },
  },
  {
    name: "unit: somebody else's, stopped and masked",
    steps: [steps.unit("systemd-journald-audit.socket", { enabled: "masked" })],
    holds: 'test "$(systemctl show -P LoadState systemd-journald-audit.socket)" = masked',
    drifts: [{ by: "systemctl unmask -q systemd-journald-audit.socket", step: "unit systemd-journald-audit.socket" }],
  },
  {
    name: "kernel: parameters and modules",
    steps: [
      steps.sysctl("/etc/sysctl.d/99-kx.conf", {
        "net.ipv4.ip_local_port_range": "20000 60000",
        "net.ipv4.conf.all.rp_filter": 2,
      }),
      steps.modules("/etc/modules-load.d/kx.conf", ["overlay"]),
    ],
    holds: 'test "$(cat /proc/sys/net/ipv4/conf/all/rp_filter)" = 2',
    drifts: [{ by: "echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter", step: "sysctl net.ipv4.conf.all.rp_filter" }],
  },
  {
    name: "binary: replaced by a newer one, in place of one that was there",
    given: "printf 'old tool' >/usr/local/bin/kx-tool; chmod 711 /usr/local/bin/kx-tool",
    steps: [steps.binary("/usr/local/bin/kx-tool", program)],
    holds: 'test "$(kx-tool)" = one',
    drifts: [
      { by: "printf broken >/usr/local/bin/kx-tool", step: "path /usr/local/bin/kx-tool" },
      { by: "chmod 644 /usr/local/bin/kx-tool", step: "path /usr/local/bin/kx-tool" },
    ],
    then: {
      steps: [steps.binary("/usr/local/bin/kx-tool", newer, { probe: { args: ["--version"], says: "two" } })],
      holds: 'test "$(kx-tool)" = two',
    },
  },
  {
    name: "binary: one program in two places",
    steps: [steps.binary("/usr/local/bin/kx-one", program), steps.binary("/opt/kx/two", program, { mode: "0700" })],
    holds: 'test "$(kx-one)" = one && test "$(/opt/kx/two)" = one && test "$(stat -c %a /opt/kx/two)" = 700',
    drifts: [{ by: "rm /opt/kx/two", step: "path /opt/kx/two" }],
  },
  {
    name: "archive: stripped, over a file that was there, then another version",
    given: "mkdir -p /opt/kx/bin; echo mine >/opt/kx/bin/b; echo other >/opt/kx/keep",
    steps: [steps.archive("/opt/kx", pack, { strip: 2 })],
    holds: 'test "$(cat /opt/kx/bin/a)" = a1 && test "$(cat /opt/kx/bin/b)" = b1 && test -e /opt/kx/doc/x',
    drifts: [
      { by: "rm /opt/kx/bin/a", step: "archive /opt/kx" },
      { by: "echo longer >/opt/kx/doc/x", step: "archive /opt/kx" },
    ],
    then: {
      steps: [steps.archive("/opt/kx", pack2, { strip: 2 })],
      holds: 'test "$(cat /opt/kx/bin/a)" = a2 && test -e /opt/kx/bin/c && test ! -e /opt/kx/doc/x',
    },
  },
  {
    name: "archive: chosen members only",
    steps: [steps.archive("/opt/kx", pack, { strip: 2, members: ["./top/bin"] })],
    holds: 'test "$(cat /opt/kx/bin/a)" = a1 && test ! -e /opt/kx/doc',
    drifts: [{ by: "rm /opt/kx/bin/b", step: "archive /opt/kx ./top/bin" }],
  },
  {
    name: "user: one that was there gets its group back",
    given: "useradd -M -g daemon -d /srv -s /bin/sh kxu",
    steps: [steps.user("kxu", { home: "/var/lib/kxu" })],
    holds: 'test "$(id -gn kxu)" = kxu',
    drifts: [],
  },
  {
    name: "user and group",
    steps: [steps.user("kxd", { home: "/var/lib/kxd", shell: "/bin/false" })],
    holds: "id kxd",
    drifts: [{ by: "userdel kxd", step: "user kxd" }],
  },
  {
    name: "mount",
    steps: [steps.mount("/mnt/kx", { source: "tmpfs", type: "tmpfs", options: "size=1m" })],
    holds: "mountpoint -q /mnt/kx && grep -q /mnt/kx /etc/fstab",
    drifts: [{ by: "umount /mnt/kx", step: "mount /mnt/kx" }],
    then: {
      steps: [steps.mount("/mnt/kx", { source: "tmpfs", type: "tmpfs", options: "size=2m" })],
      holds: 'test "$(findmnt -n -o SIZE /mnt/kx | tr -d " ")" = 2M && grep -q size=2m /etc/fstab',
    },
  },
  {
    name: "swap in fstab",
    given: "printf '# a comment about swap\\n/swap.img none swap sw 0 0\\n' >>/etc/fstab",
    steps: [steps.swapOff()],
    holds: "grep -q '^# a comment about swap' /etc/fstab && ! grep -q '^/swap.img' /etc/fstab",
    drifts: [{ by: "sed -i 's/^#kubexm# //' /etc/fstab", step: "swap" }],
  },
  {
    name: "command",
    steps: [
      steps.command("a marker", {
        run: sh`touch /srv/marker`,
        doneWhen: sh`test -e /srv/marker`,
        undo: sh`rm -f /srv/marker`,
      }),
    ],
    holds: "test -e /srv/marker",
    drifts: [{ by: "rm /srv/marker", step: "command a marker" }],
  },
];

describe("steps on a real host", () => {
  let host: LabHost;
  let remote: Remote;
  before(async () => {
    const lab = await labUp({ name: NAME, hosts: 1, keep: false });
    const [first] = lab.hosts;
    assert.ok(first);
    host = first;
    const { name, address, user, privateKeyPath } = first;
    remote = await connect(hostSpec.parse({ name, address, user, privateKeyPath, knownHostsPath: lab.knownHostsPath }));
  });
  after(async () => {
    await closeAll();
    await labDown(NAME);
    rmSync(scratch, { recursive: true, force: true });
  });
  const givesBack = leftAsBefore(() => host);
  for (const row of cases) test(row.name, () => givesBack(row.given, () => walk(remote, row)));
  const failing: readonly [string, StepCase["steps"], RegExp][] = [
    [
      "a unit that ends at once fails with its last words",
      [
        steps.file(
          "/etc/systemd/system/kx.service",
          "[Service]\nExecStart=/bin/sh -c 'echo its last words; exit 3'\nRestart=no\n",
        ),
        steps.unit("kx.service", { running: true }),
      ],
      /unit kx\.service[\s\S]*kx\.service does not run[\s\S]*its last words/,
    ],
    [
      "a unit that ends after a while, and is started again and again, fails with its last words",
      [
        steps.file(
          "/etc/systemd/system/kx.service",
          "[Service]\nExecStart=/bin/sh -c 'sleep 1; echo its last words; exit 3'\nRestart=always\nRestartSec=0\n",
        ),
        steps.unit("kx.service", { running: true, steady: 3 }),
      ],
      /unit kx\.service[\s\S]*kx\.service does not run[\s\S]*its last words/,
    ],
    [
      "a program that does not run here does not take its place",
      [steps.binary("/usr/local/bin/kx", local("foreign", "\x7fELF no"), { probe: { args: [], says: "" } })],
      /path \/usr\/local\/bin\/kx[\s\S]*it does not run here/,
    ],
    [
      "a program of another version does not take its place",
      [steps.binary("/usr/local/bin/kx", program, { probe: { args: [], says: "v2" } })],
      /it says 'one' where 'v2' was expected/,
    ],
    [
      "an owner that does not exist is named",
      [steps.file("/etc/kx.conf", "x", { owner: "nobody-here:root" })],
      /path \/etc\/kx\.conf[\s\S]*nobody-here/,
    ],
  ];
  for (const [name, wanted, says] of failing)
    test(name, () =>
      givesBack(undefined, async () => {
        const error: unknown = await converge(remote, work("failing", wanted)).catch((why: unknown) => why);
        await revert(remote, "failing", false, context("failing"));
        assert.match(String(error), says);
      }),
    );
  test("a failed look is an error, never absence", async () => {
    const broken = { ...steps.symlink("/etc/kx", "x"), look: raw("cat /nowhere") };
    await assert.rejects(
      walk(remote, { name: "broken", steps: [broken], holds: "true", drifts: [] }),
      /could not look[\s\S]*nowhere/,
    );
  });
});
