import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Lab, type LabHost, anyLabName, labDown, labExec, labUp, restartHost } from "../../lab/hosts.js";
import { type Snapshot, snapshot } from "../../lab/snapshot.js";
import { changesOn, ownChanges } from "../harness/machine-wide";
import { run } from "../../toolchain/process.js";

interface Change {
  what: string;
  make: string;
  /** `sign kind name` of every difference, no more and no less. */
  noticed: readonly string[];
  undo: string;
}

const NAME = anyLabName();
const unit = "/etc/systemd/system/probe.service";
const unitText = "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n";

const fileIn = (folder: string): Change => ({
  what: `a file in ${folder}`,
  make: `echo a >${folder}/probe`,
  noticed: [`+ file ${folder}/probe`],
  undo: `rm ${folder}/probe`,
});

/** All of them at once: each has files and names of its own. */
const CHANGES: readonly Change[] = [
  ...["/etc", "/usr/bin", "/usr/local/bin", "/opt", "/var/lib", "/root", "/boot", "/srv", "/home", "/tmp"].map(fileIn),
  {
    what: "a content of the same length and time",
    make: "touch -r /etc/issue.net /run/time; sed -i s/12/13/ /etc/issue.net; touch -r /run/time /etc/issue.net",
    noticed: ["~ file /etc/issue.net"],
    undo: "sed -i s/13/12/ /etc/issue.net",
  },
  {
    what: "a content",
    make: "cp -p /etc/issue /root/issue; echo x >>/etc/issue",
    noticed: ["+ file /root/issue", "~ file /etc/issue"],
    undo: "mv /root/issue /etc/issue",
  },
  {
    what: "a mode",
    make: "chmod 600 /etc/host.conf",
    noticed: ["~ file /etc/host.conf"],
    undo: "chmod 644 /etc/host.conf",
  },
  {
    what: "an owner",
    make: "chown 1:2 /etc/services",
    noticed: ["~ file /etc/services"],
    undo: "chown 0:0 /etc/services",
  },
  {
    what: "a link's target",
    make: "ln -sfn /tmp /etc/mtab",
    noticed: ["~ file /etc/mtab"],
    undo: "ln -sfn ../proc/self/mounts /etc/mtab",
  },
  {
    what: "a file that went",
    make: "mv /etc/pam.conf /run/pam.conf",
    noticed: ["- file /etc/pam.conf"],
    undo: "mv /run/pam.conf /etc/pam.conf",
  },
  {
    what: "a name with everything in it",
    make: "mkdir /opt/odd; : >\"/opt/odd/$(printf 'a b\\tc\\nd  e')\"",
    noticed: ["+ file /opt/odd", "+ file /opt/odd/a b\tc\nd  e"],
    undo: "rm -r /opt/odd",
  },
  {
    what: "a unit",
    make: `printf '${unitText}' >${unit}; systemctl daemon-reload`,
    noticed: [`+ file ${unit}`, "+ unit-file probe.service"],
    undo: `rm ${unit}; systemctl daemon-reload`,
  },
  {
    what: "an enabled unit",
    make: "systemctl enable -q nftables.service",
    noticed: ["+ file /etc/systemd/system/sysinit.target.wants/nftables.service", "~ unit-file nftables.service"],
    undo: "systemctl disable -q nftables.service",
  },
  {
    what: "a stopped unit",
    make: "systemctl stop -q systemd-logind",
    noticed: ["- unit systemd-logind.service"],
    undo: "systemctl start systemd-logind",
  },
  {
    what: "a masked unit",
    make: "systemctl mask -q quotaon.service",
    noticed: ["+ file /etc/systemd/system/quotaon.service", "~ unit-file quotaon.service"],
    undo: "systemctl unmask -q quotaon.service",
  },
  {
    what: "a running unit",
    make: "systemd-run -q --unit=probe-run sleep 600",
    noticed: ["+ unit probe-run.service", "+ unit-file probe-run.service"],
    undo: "systemctl stop -q probe-run.service",
  },
  {
    what: "a sysctl",
    make: "sysctl -qw net.ipv4.conf.lo.arp_ignore=1",
    noticed: ["~ sysctl net.ipv4.conf.lo.arp_ignore"],
    undo: "sysctl -qw net.ipv4.conf.lo.arp_ignore=0",
  },
  { what: "a mount", make: "mount -t tmpfs probe /mnt", noticed: ["+ mount /mnt", "~ file /mnt"], undo: "umount /mnt" },
  {
    what: "a mount's options",
    make: "mount -o remount,ro /run/lock",
    noticed: ["~ mount /run/lock"],
    undo: "mount -o remount,rw /run/lock",
  },
  {
    what: "a user, a group and a password",
    make: "useradd -u 4000 -M probe; echo probe:x | chpasswd",
    noticed: [
      "+ group probe",
      "+ password probe",
      "+ user probe",
      ...["group", "gshadow", "passwd", "shadow", "subgid", "subuid"].map((name) => `~ file /etc/${name}`),
    ],
    undo: "userdel probe",
  },
  {
    // Real swap would be on for every lab host: the kernel is the machine's.
    what: "swap",
    make: `printf 'Filename Type Size Used Priority\n/var/swap file 2044 0 -2\n' >/run/swaps && mount --bind /run/swaps /proc/swaps`,
    noticed: ["+ mount /proc/swaps", "+ swap /var/swap"],
    undo: "umount /proc/swaps && rm /run/swaps",
  },
  {
    what: "an nftables rule",
    make: "nft add table inet probe; nft 'add chain inet probe c { type filter hook input priority 0; }'; nft add rule inet probe c tcp dport 9 drop",
    noticed: [
      "+ firewall inet probe",
      "+ firewall inet probe chain c",
      "+ firewall inet probe chain c: tcp dport 9 drop",
      "+ firewall inet probe chain c: type filter hook input priority filter; policy accept;",
    ],
    undo: "nft delete table inet probe",
  },
  {
    what: "an iptables rule",
    make: "iptables -N PROBE; iptables -A PROBE -j RETURN",
    noticed: [
      "+ firewall ip filter",
      "+ firewall ip filter chain PROBE",
      "+ firewall ip filter chain PROBE: counter return",
    ],
    undo: "nft delete table ip filter",
  },
  {
    what: "a route",
    make: "ip route add 198.51.100.0/24 via 172.30.255.254 dev eth0 onlink",
    noticed: ["+ route 198.51.100.0/24 via 172.30.255.254 dev eth0 onlink"],
    undo: "ip route delete 198.51.100.0/24",
  },
  {
    what: "a routing rule",
    make: "ip rule add to 198.51.100.0/24 lookup main preference 77",
    noticed: ["+ rule IPv4 77:"],
    undo: "ip rule delete preference 77",
  },
  {
    what: "an address",
    make: "ip address add 198.51.100.7/32 dev lo",
    noticed: [
      "+ address lo inet 198.51.100.7/32 scope global lo",
      "+ route local 198.51.100.7 dev lo table local proto kernel scope host src 198.51.100.7",
    ],
    undo: "ip address delete 198.51.100.7/32 dev lo",
  },
  {
    what: "an open port",
    make: "socat TCP-LISTEN:4321 - </dev/null >/dev/null 2>&1 & sleep 0.5",
    noticed: ["+ port tcp 0.0.0.0:4321"],
    undo: "pkill socat; sleep 0.2",
  },
  {
    what: "a hostname",
    make: "hostname other",
    noticed: ["~ sysctl kernel.hostname", "~ system hostname"],
    undo: "hostname node1",
  },
  {
    what: "a time zone",
    make: "ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime",
    noticed: ["~ file /etc/localtime", "~ system timezone"],
    undo: "ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime",
  },
  {
    what: "a default target",
    make: "systemctl set-default -q multi-user.target",
    noticed: ["+ file /etc/systemd/system/default.target", "~ system default target", "~ unit-file multi-user.target"],
    undo: "rm /etc/systemd/system/default.target",
  },
  {
    what: "a held package",
    make: "apt-mark -qq hold curl",
    noticed: ["+ hold curl"],
    undo: "apt-mark -qq unhold curl",
  },
  {
    what: "a package's mark",
    make: "apt-mark -qq auto curl",
    noticed: ["- manual curl"],
    undo: "apt-mark -qq manual curl",
  },
];

/** One at a time. What a package brings is its own affair: a pattern says what may be noticed. */
const ALONE: readonly (Omit<Change, "noticed"> & { noticed: RegExp })[] = [
  {
    what: "a password",
    make: "cp -p /etc/shadow /run/shadow; echo root:x | chpasswd",
    noticed: /^~ (file \/etc\/shadow|password root)$/,
    undo: "mv /run/shadow /etc/shadow",
  },
  {
    what: "a link",
    make: "ip link add probe type bridge",
    noticed: /^\+ (link probe|sysctl net\..*\.probe\..*)$/,
    undo: "ip link delete probe",
  },
  {
    what: "a package",
    make: "apt-get install -qq -y tree >/dev/null",
    noticed: /^\+ (package tree|manual tree|file .*tree.*)$/,
    undo: "apt-get purge -qq -y tree >/dev/null",
  },
];

const signed = (was: Snapshot, is: Snapshot) =>
  ownChanges(was, is)
    .map(
      ({ kind, name, before: b, after: a }) => `${b === undefined ? "+" : a === undefined ? "-" : "~"} ${kind} ${name}`,
    )
    .sort();

describe("lab snapshot", () => {
  let lab: Lab;
  let host: LabHost;
  let clean: Snapshot;

  before(async () => {
    lab = await labUp({ name: NAME, keep: false });
    [host] = lab.hosts as [LabHost];
    clean = await snapshot(host);
  });
  after(() => labDown(NAME));

  it("notices each kind of change, and nothing else", async () => {
    for (const { make } of CHANGES) await labExec(host, make);
    const found = signed(clean, await snapshot(host));
    for (const { undo } of CHANGES) await labExec(host, undo);
    const missed = CHANGES.filter(({ noticed }) => !noticed.every((line) => found.includes(line)));
    assert.deepEqual(
      missed.map(({ what }) => what),
      [],
    );
    assert.deepEqual(found, CHANGES.flatMap(({ noticed }) => noticed).sort());
  });

  for (const { what, make, noticed, undo } of ALONE)
    it(`notices ${what}`, async () => {
      await labExec(host, make);
      const found = signed(clean, await snapshot(host));
      await labExec(host, undo);
      assert.notEqual(found.length, 0);
      const other = found.filter((line) => !noticed.test(line));
      assert.deepEqual(other, []);
    });

  it("finds the host as it was after everything was undone, a login and a reboot", async () => {
    await run("ssh", ["-F", lab.sshConfig, host.name, "true"]);
    await labExec(host, "systemctl daemon-reload; apt-get update -qq; sleep 5");
    assert.equal(changesOn(clean, await snapshot(host)), "");
    await restartHost(host);
    assert.equal(changesOn(clean, await snapshot(host)), "");
  });
});
