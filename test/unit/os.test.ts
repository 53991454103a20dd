import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseFacts, type Facts } from "../../provider/facts";
import { osProfile } from "../../provider/os";
import { osReleases } from "./fixtures/os-releases";

describe("os-release texts", () => {
  for (const { name, text, id, version, family } of osReleases)
    test(name, () => {
      const os = osProfile(text);
      assert.deepEqual([os.id, os.version, os.family, os.name], [id, version, family, name]);
      assert.equal(os.packageManager, family === "debian" ? "apt" : "dnf");
      assert.equal(os.chronyUnit, family === "debian" ? "chrony.service" : "chronyd.service");
    });
  test("quotes and escapes are those of a shell", () => {
    const os = osProfile(`ID='debian'\nPRETTY_NAME="A \\"B\\" \\$C"\n# ID=rhel\n  VERSION_ID=9\n`);
    assert.deepEqual([os.id, os.name, os.version], ["debian", 'A "B" $C', "9"]);
  });
  for (const text of ["ID=alpine\nPRETTY_NAME='Alpine Linux v3.20'\n", "", "NAME=Arch\nID=arch\n"])
    test(`no family: ${JSON.stringify(text.slice(0, 20))}`, () =>
      assert.throws(() => osProfile(text), /is not of the Debian or RHEL family/));
});

describe("facts", () => {
  const base = `${osReleases[0]?.text ?? ""}@arch=x86_64
@kernel=6.1.0-18-amd64
@machineId=0123
@bootId=4567
@cgroup=v2
@init=systemd
@virtualisation=kvm
@memoryKiB=2048000
@swapKiB=0
@cpus=4
@selinux=Enforcing
@firewall=firewalld
@firewall=nftables
@address=lo 127.0.0.1/8
@address=eth0 192.0.2.9/24
`;
  test("all of them", () => {
    const { os, ...rest } = parseFacts(base);
    assert.equal(os.family, "debian");
    assert.deepEqual(rest, {
      arch: "amd64",
      kernel: "6.1.0-18-amd64",
      machineId: "0123",
      bootId: "4567",
      cgroup: "v2",
      init: "systemd",
      virtualisation: "kvm",
      memoryMiB: 2000,
      cpus: 4,
      swap: false,
      selinux: "enforcing",
      firewall: ["firewalld", "nftables"],
      addresses: ["lo 127.0.0.1/8", "eth0 192.0.2.9/24"],
    });
  });
  const rows: readonly [string, string, string, Partial<Facts>][] = [
    ["arm64", "@arch=x86_64", "@arch=aarch64", { arch: "arm64" }],
    ["an arch nobody names otherwise", "@arch=x86_64", "@arch=s390x", { arch: "s390x" }],
    ["swap", "@swapKiB=0", "@swapKiB=1024", { swap: true }],
    ["cgroup v1", "@cgroup=v2", "@cgroup=v1", { cgroup: "v1" }],
    ["an address with = in it", "lo 127.0.0.1/8", "a=b ::1/128", { addresses: ["a=b ::1/128", "eth0 192.0.2.9/24"] }],
  ];
  for (const [name, from, to, expected] of rows)
    test(name, () => assert.deepEqual(parseFacts(base.replace(from, to)), { ...parseFacts(base), ...expected }));
});
