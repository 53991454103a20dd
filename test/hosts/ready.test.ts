import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse, stringify } from "yaml";
import { labExec, withLab } from "../../lab/hosts.js";
import { snapshot } from "../../lab/snapshot.js";
import { run } from "../../toolchain/process.js";
import { changedSince } from "../harness/fault-run.js";

const main = join(__dirname, "..", "..", "cli", "main.js");
const cwd = mkdtempSync(join(tmpdir(), "kubexm-ready-"));
after(() => rmSync(cwd, { recursive: true, force: true }));

const inFile = (sed: string, path: string) => `sed '${sed}' ${path} >/tmp/x; cat /tmp/x >${path}; rm /tmp/x`;

/** What somebody does by hand, and how drift names it. */
const EDITS: readonly { by: string; component: string; step: string }[] = [
  { by: "hostname other", component: "System", step: "hostname" },
  { by: "ln -sfn /usr/share/zoneinfo/UTC /etc/localtime", component: "System", step: "path /etc/localtime" },
  { by: "echo 0 >/proc/sys/net/ipv4/ip_forward", component: "System", step: "sysctl net.ipv4.ip_forward" },
  {
    by: "echo '# mine' >>/etc/sysctl.d/99-kubexm-cri.conf",
    component: "System",
    step: "path /etc/sysctl.d/99-kubexm-cri.conf",
  },
  { by: "rm /etc/modules-load.d/kubexm.conf", component: "System", step: "path /etc/modules-load.d/kubexm.conf" },
  {
    by: inFile("/BEGIN KubeXM/,/END KubeXM/d", "/etc/hosts"),
    component: "System",
    step: "block /etc/hosts KubeXM Managed Block",
  },
  { by: inFile("/BEGIN KubeXM/,/END KubeXM/d", "/etc/resolv.conf"), component: "Resolver", step: "resolver" },
  { by: "dpkg --remove --force-depends ipset", component: "Packages", step: "package ipset" },
  {
    by: "echo 'server 192.0.2.123' >>/etc/chrony/chrony.conf",
    component: "Chrony",
    step: "path /etc/chrony/chrony.conf",
  },
  { by: "systemctl stop chrony", component: "Chrony", step: "unit chrony.service" },
  { by: inFile("s/^#kubexm# //", "/etc/fstab"), component: "System", step: "swap" },
  { by: "rm /etc/systemd/system.conf.d/50-kubexm.conf", component: "System", step: "limit nofile" },
  // The first host serves time to the other.
  { by: inFile("/dport 123/d", "/etc/nftables.conf"), component: "Chrony", step: "opening 123/udp" },
];

/**
 * What the lab has as up wants it would be nobody's to give back. The firewall lets in nothing but SSH; it flushes nothing, as
 * the lab's own names may go by rules of others.
 */
const OTHERWISE = `
hostname was-$(hostname)
echo 0 >/proc/sys/net/ipv4/ip_forward
printf '# swap was here\\n/dev/kx-swap none swap sw 0 0\\n' >>/etc/fstab
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\\nDefaultLimitNOFILE=1024:4096\\n' >/etc/systemd/system.conf.d/10-low.conf
systemctl daemon-reexec
cat >/etc/nftables.conf <<'X'
#!/usr/sbin/nft -f
table inet filter {
  chain input {
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iif lo accept
    tcp dport 22 accept
  }
  chain forward {
    type filter hook forward priority 0; policy drop;
  }
}
X
systemctl start nftables`;

const SECRET = "hush-4711-hush";

test("hosts made ready by one up: hand edits of every kind are named, healed, and in the end all is as it was", async (t) => {
  await withLab({ hosts: 2, cwd }, async (lab) => {
    const [first, second] = lab.hosts;
    assert.ok(first && second);
    const file = join(cwd, "cluster.yaml");
    const cluster = parse(readFileSync(lab.clusterYaml, "utf8")) as {
      metadata: object;
      spec: { hosts: object[]; kubernetes: object };
    };
    writeFileSync(
      file,
      stringify({
        ...cluster,
        metadata: { name: "ready" },
        spec: {
          ...cluster.spec,
          hosts: cluster.spec.hosts.map((host) => ({ ...host, sudoPassword: "${config:sudo}" })),
          kubernetes: { type: "none" },
          system: { timezone: "Asia/Shanghai", ntpServers: ["node1"] },
          // Nobody is there and says so at once: the next one is asked.
          extra: {
            resolves: [{ address: "127.0.0.99" }],
            hosts: [{ domain: "mine.example.com", address: "192.0.2.77" }],
          },
        },
      }),
    );
    const kubexm = async (verb: string, code: number, ...flags: string[]) => {
      const done = await run(process.execPath, [main, verb, "-f", file, ...flags], { cwd, okCodes: [0, 1, 2] });
      assert.equal(done.code, code, done.stdout + done.stderr);
      return done.stdout + done.stderr;
    };
    const drift = async (code: number) =>
      JSON.parse(await kubexm("drift", code, "--json")) as {
        drift: { host: string; component: string; step: string }[];
      };
    for (const host of lab.hosts) await labExec(host, OTHERWISE);
    const before = await Promise.all(lab.hosts.map((host) => snapshot(host)));

    await t.test("without the value it takes from the stack's configuration nothing begins", async () => {
      assert.match(await kubexm("up", 1, "--yes"), /the stack's configuration has no sudo; write kubexm config set/);
    });

    await t.test("up, with a secret from there that nobody can read in the state", async () => {
      const argv = [main, "config", "-f", file, "set", "--secret", "sudo"];
      await run(process.execPath, argv, { cwd, input: `${SECRET}\n` });
      assert.match(await kubexm("up", 0, "--yes"), /created, 0 changed/);
      const home = join(cwd, ".kubexm", "ready");
      const texts = ["state", "logs", "pulumi"].flatMap((folder) =>
        readdirSync(join(home, folder), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
          .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8")),
      );
      assert.ok(texts.some((text) => text.includes("sudoPassword")));
      assert.ok(!texts.some((text) => text.includes(SECRET)));
    });

    await t.test("a second up changes nothing", async () => {
      await kubexm("up", 0, "--yes", "--expect-no-changes");
    });

    await t.test("drift names what was done by hand, and where", async () => {
      assert.deepEqual((await drift(0)).drift, []);
      await labExec(first, EDITS.map(({ by }) => by).join("\n"));
      const told = (await drift(2)).drift.map(
        ({ host, component, step }) => `${host} ${component.split(" ")[0] ?? ""}: ${step}`,
      );
      assert.deepEqual(
        EDITS.map(({ component, step }) => `node1 ${component}: ${step}`).filter((wanted) => !told.includes(wanted)),
        [],
        told.join("\n"),
      );
      assert.ok(!told.some((row) => row.startsWith("node2")), told.join("\n"));
    });

    await t.test("a preview that looks shows it; up --refresh heals it", async () => {
      const preview = await kubexm("preview", 0, "--refresh");
      for (const { step } of EDITS) assert.ok(preview.includes(step), `${step}\n${preview}`);
      await kubexm("up", 0, "--yes", "--refresh");
      assert.deepEqual((await drift(0)).drift, []);
    });

    await t.test("destroy gives the hosts back", async () => {
      await kubexm("destroy", 0, "--yes");
      for (const [i, host] of lab.hosts.entries())
        assert.equal(await changedSince(before[i] ?? {}, host), "", host.name);
    });
  });
});
