import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  type Lab,
  type LabHost,
  anyLabName,
  labDown,
  labExec,
  labStatus,
  labSweep,
  labUp,
  restartHost,
  startHost,
  stopHost,
  withLab,
} from "../../lab/hosts.js";
import { labCommand } from "../../lab/main.js";
import { run } from "../../toolchain/process.js";

const [KINDS, ORPHAN, KEPT, WRONG, CLI] = [anyLabName(), anyLabName(), anyLabName(), anyLabName(), anyLabName()];

const script = async (text: string) => (await run("sh", ["-c", text], { okCodes: [0, 1] })).stdout;

/** What a lab may leave on the machine: links, rules, tables. Other labs may run beside, so only these names are looked for. */
const traces = (bridges: readonly string[]) =>
  script(`{ ip link; ip rule; nft list ruleset; iptables-save; } 2>/dev/null | grep -E '${bridges.join("|")}'`);

async function bridgesOf(cidrs: readonly string[]): Promise<string[]> {
  const lines = await script("ip -br -4 address");
  return lines
    .split("\n")
    .filter((line) => cidrs.some((cidr) => line.includes(cidr)))
    .map((line) => line.split(" ")[0] ?? "");
}

const ssh = (lab: Lab, host: string, command: string) =>
  run("ssh", ["-F", lab.sshConfig, "-o", "BatchMode=yes", host, command], { okCodes: [0, 1, 255] });

const find = (lab: Lab, name: string): LabHost => {
  const host = lab.hosts.find((one) => one.name === name);
  assert.ok(host);
  return host;
};

describe("a lab with every kind of host", () => {
  let cwd: string;
  let lab: Lab;
  let bridges: string[];

  before(async () => {
    cwd = await mkdtemp(join(tmpdir(), "kubexm-lab-"));
    lab = await labUp({
      name: KINDS,
      cwd,
      keep: false,
      bastion: true,
      secondInterface: true,
      memory: "300m",
      hosts: [
        "plain",
        { name: "user", user: "ops", shell: "/bin/sh" },
        { name: "sudo", user: "ops", sudo: "password" },
        { name: "password", login: "password" },
        { name: "odd", sshd: { MaxSessions: 2, MaxStartups: "3:30:5" }, tmpfs: { "/opt": "4m" }, memory: "200m" },
      ],
    });
    bridges = await bridgesOf([find(lab, "plain").address.replace(/\d+$/, "1/24")]);
  });
  after(() => rm(cwd, { recursive: true, force: true }));

  it("boots all of them without a failed unit", async () => {
    for (const host of lab.hosts) {
      const { stdout } = await labExec(host, "systemctl is-system-running; systemctl --failed --no-legend; hostname");
      assert.equal(stdout, `running\n${host.name}\n`);
    }
  });

  const answers: readonly [string, string, string][] = [
    ["plain", "id -un; pwd", "root\n/root\n"],
    ["user", "id -un; sudo -n id -un; echo $SHELL", "ops\nroot\n/bin/sh\n"],
    ["sudo", "id -un; sudo -n id -un 2>/dev/null; echo $SHELL", "ops\n/bin/bash\n"],
    ["odd", "df --output=size /opt | tail -n1", "  4096\n"],
    ["bastion", "id -un", "root\n"],
  ];
  for (const [host, command, answer] of answers)
    it(`answers by SSH on ${host}, by way of the bastion`, async () => {
      assert.equal((await ssh(lab, host, command)).stdout.replace(/^ +/, "  "), answer);
    });

  it("lets nobody in by key where a password is asked", async () => {
    const host = find(lab, "password");
    assert.equal(host.privateKeyPath, undefined);
    const { stderr } = await ssh(lab, "password", "true");
    assert.match(stderr, /Permission denied/);
  });

  it("knows the passwords", async () => {
    const sudo = find(lab, "sudo");
    const asked = await run("ssh", ["-F", lab.sshConfig, "sudo", "sudo -S -p '' id -un"], {
      input: `${sudo.sudoPassword ?? ""}\n`,
    });
    assert.equal(asked.stdout, "root\n");
    const { password } = find(lab, "password");
    // getent gives salt and method of what is stored; perl's crypt is the system's own.
    const stored = await labExec(find(lab, "password"), "getent shadow root | cut -d: -f2");
    const again = await labExec(
      find(lab, "password"),
      `perl -e 'print crypt($ARGV[0], $ARGV[1])' '${password ?? ""}' '${stored.stdout.trim()}'`,
    );
    assert.equal(again.stdout, stored.stdout.trim());
  });

  it("sets sshd, memory limits and the second interface", async () => {
    const odd = find(lab, "odd");
    const { stdout } = await labExec(
      odd,
      "sshd -T | grep -E '^max(sessions|startups)'; ip -br -4 address show eth1; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || :",
    );
    assert.match(stdout, /maxsessions 2/);
    assert.match(stdout, /maxstartups 3:30:5/);
    assert.ok(odd.internalAddress && stdout.includes(odd.internalAddress));
    assert.match(stdout, new RegExp(`^${200 * 2 ** 20}$`, "m"));
  });

  it("gives files of its own, that a program can replace", async () => {
    const { stdout } = await labExec(
      find(lab, "plain"),
      "for f in hosts hostname resolv.conf; do cp -p /etc/$f /etc/$f.new && mv -f /etc/$f.new /etc/$f && echo ok; done; findmnt -rno TARGET | grep ^/etc; :",
    );
    assert.equal(stdout, "ok\nok\nok\n");
  });

  it("resolves names and reaches the package archive, but nothing goes out to service and pod addresses", async () => {
    const { stdout } = await labExec(
      find(lab, "plain"),
      "getent hosts deb.debian.org >/dev/null && echo resolves; ping -c1 -W5 10.96.0.1; ping -c1 -W5 10.233.1.1; :",
    );
    assert.match(stdout, /^resolves/);
    assert.equal(stdout.match(/Destination Net Unreachable/g)?.length, 2);
  });

  it("keeps addresses, keys and files over a reboot, and runs sysctl.d", async () => {
    const host = find(lab, "plain");
    await labExec(
      host,
      "echo x >/root/kept; echo y >/run/lost; echo net.ipv4.conf.lo.arp_ignore=1 >/etc/sysctl.d/x.conf",
    );
    await restartHost(host);
    const { stdout } = await ssh(
      lab,
      "plain",
      "cat /root/kept; ls /run/lost 2>/dev/null; cat /proc/sys/net/ipv4/conf/lo/arp_ignore; cat /etc/hostname",
    );
    assert.equal(stdout, "x\n1\nplain\n");
  });

  it("stops a host, tells so, and starts it again", async () => {
    const host = find(lab, "user");
    await stopHost(host, true);
    const stopped = await labStatus(KINDS, cwd);
    assert.deepEqual(
      stopped?.hosts.filter(({ state }) => state !== "running").map(({ host: { name }, state }) => `${name} ${state}`),
      ["user exited"],
    );
    await startHost(host);
    assert.equal((await ssh(lab, "user", "id -un")).stdout, "ops\n");
  });

  it("keeps its secrets to its owner", async () => {
    for (const file of ["id_ed25519", "cluster.yaml", "lab.json"])
      assert.equal((await stat(join(lab.dir, file))).mode & 0o077, 0, file);
  });

  it("is found by the same options and refuses others", async () => {
    await assert.rejects(labUp({ name: KINDS, cwd }), /runs already with other options/);
    await assert.rejects(labUp({ name: KINDS, cwd: tmpdir() }), new RegExp(`runs already, of .*${KINDS}`));
    await assert.rejects(labDown(KINDS, tmpdir()), /belongs to/);
  });

  it("leaves nothing", async () => {
    assert.equal(bridges.length, 1);
    assert.notEqual(await traces(bridges), "");
    assert.equal(await labDown(KINDS, cwd), true);
    assert.equal(await traces(bridges), "");
    assert.equal(existsSync(lab.dir), false);
    assert.equal(await labDown(KINDS, cwd), false);
  });
});

describe("labs", () => {
  it("are reached through the bastion only, when it is asked for so", async () => {
    await withLab({ hosts: 1, bastion: "only" }, async (lab) => {
      assert.equal((await ssh(lab, "node1", "hostname")).stdout, "node1\n");
      const direct = await run(
        "ssh",
        ["-F", lab.sshConfig, "-o", "ProxyJump=none", "-o", "ConnectTimeout=3", "node1", "true"],
        { okCodes: [0, 255] },
      );
      assert.equal(direct.code, 255);
    });
  });

  it("of a killed process are swept away, others are not", async () => {
    const cwd = await mkdtemp(join(tmpdir(), "kubexm-lab-"));
    const module = join(__dirname, "..", "..", "lab", "hosts.js");
    const orphan = (name: string, keep: boolean) =>
      run(process.execPath, ["-e", `require(${JSON.stringify(module)}).labUp(${JSON.stringify({ name, cwd, keep })})`]);
    try {
      await Promise.all([orphan(ORPHAN, false), orphan(KEPT, true)]);
      await labSweep();
      assert.equal(await labStatus(ORPHAN, cwd), undefined);
      const kept = await labStatus(KEPT, cwd);
      assert.deepEqual(
        kept?.hosts.map(({ state }) => state),
        ["running"],
      );
      assert.equal((await readFile(kept.lab.knownHostsPath, "utf8")).split("\n").length, 2);
      await labSweep(`${cwd}-other`);
      assert.ok(await labStatus(KEPT, cwd));
      await labSweep(cwd);
      assert.equal(await labStatus(KEPT, cwd), undefined);
    } finally {
      await labDown(KEPT, cwd);
      await rm(cwd, { recursive: true, force: true });
    }
  });

  it("that cannot start leave nothing", async () => {
    const cwd = await mkdtemp(join(tmpdir(), "kubexm-lab-"));
    await assert.rejects(labUp({ name: WRONG, cwd, hosts: 2, memory: "1k" }), /memory/i);
    assert.equal(await labDown(WRONG, cwd), false);
    await rm(cwd, { recursive: true, force: true });
  });

  it("are there on the command line", async () => {
    const cwd = await mkdtemp(join(tmpdir(), "kubexm-lab-"));
    const here = process.cwd();
    process.chdir(cwd);
    try {
      assert.equal(await labCommand(["up", "--name", CLI]), 0);
      assert.equal(await labCommand(["status"]), 0);
      assert.equal(await labCommand(["ssh", "node1", "exit 7"]), 7);
      assert.equal(await labCommand(["snapshot", "node1", "before.json"]), 0);
      assert.equal(await labCommand(["compare", "node1", "before.json"]), 0);
      assert.equal(await labCommand(["ssh", "node1", "touch /etc/new"]), 0);
      assert.equal(await labCommand(["compare", "node1", "before.json"]), 1);
      await assert.rejects(labCommand(["ssh", "node9"]), /has no host node9: it has node1/);
      assert.equal(await labCommand(["down"]), 0);
      await assert.rejects(labCommand(["status"]), /no lab lab is up/);
    } finally {
      process.chdir(here);
      await labDown(CLI, cwd);
      await rm(cwd, { recursive: true, force: true });
    }
  });
});
