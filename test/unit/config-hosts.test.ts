import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addressesOf,
  expandRange,
  hostsOf,
  hostsRecords,
  hostsWithRoles,
  parseSpec,
} from "../../resources/config/index";
import { cidrText, contains, ipText, network, overlaps, parseCidr, parseIp } from "../../resources/config/ip";

const known = <T>(value: T | undefined): T => {
  assert.ok(value !== undefined);
  return value;
};

test("ranges of host names", () => {
  const cases: [string, string[]][] = [
    ["node1", ["node1"]],
    ["node[5:6]", ["node5", "node6"]],
    ["node[8:10]", ["node8", "node9", "node10"]],
    ["node[08:10]", ["node08", "node09", "node10"]],
    ["rack[1:2].example", ["rack1.example", "rack2.example"]],
    ["node[3:3]", ["node3"]],
    // Not ranges: left as they are, and reported by the rules.
    ["node[6:5]", ["node[6:5]"]],
    ["node[a:b]", ["node[a:b]"]],
    ["node[0:999999999]", ["node[0:999999999]"]],
  ];
  for (const [text, names] of cases) assert.deepEqual(expandRange(text), names, text);
});

const spec = parseSpec("prod", {
  hosts: ["m1", "m2", "m3", "w1"].map((name, i) => ({ name, address: `192.0.2.${i + 1}` })),
  roleGroups: { etcd: ["m[1:3]"], master: ["m3", "m[1:2]"], worker: ["w1", "m1"] },
  controlPlaneEndpoint: { internalLoadbalancer: "haproxy" },
});

test("hosts come in the order of the file, the hosts of a role in the order of its group", () => {
  assert.deepEqual(
    hostsWithRoles(spec).map(({ host, roles }) => [host.name, roles]),
    [
      ["m1", ["etcd", "master", "worker"]],
      ["m2", ["etcd", "master"]],
      ["m3", ["etcd", "master"]],
      ["w1", ["worker"]],
    ],
  );
  const unsaid = { ...spec, roleGroups: { ...spec.roleGroups, etcd: [] } };
  assert.deepEqual(hostsWithRoles(unsaid), hostsWithRoles(spec), "kubeadm's masters have etcd, whatever the file says");
  assert.deepEqual(
    hostsOf(spec, "master").map(({ name }) => name),
    ["m3", "m1", "m2"],
  );
});

test("addresses are parted by family", () => {
  const cases: [Parameters<typeof addressesOf>[0], object][] = [
    [{ address: "192.0.2.1" }, { v4: "192.0.2.1" }],
    [
      { address: "192.0.2.1", internalAddress: "172.16.0.2,2022::2" },
      { v4: "172.16.0.2", v6: "2022::2" },
    ],
    [{ address: "192.0.2.1", internalAddress: "2022:0:0::2" }, { v6: "2022::2" }],
    [{ address: "vm.example.com" }, {}],
  ];
  for (const [host, found] of cases) assert.deepEqual(addressesOf(host), found);
});

test("records of a hosts file, also when YAML joined their lines", () => {
  const both = [
    { address: "192.0.2.1", names: ["a", "b"] },
    { address: "2001:db8::1", names: ["c"] },
  ];
  assert.deepEqual(hostsRecords("192.0.2.1 a b\n# no\n2001:db8::1 c # yes\n"), both);
  assert.deepEqual(hostsRecords("192.0.2.1 a b 2001:db8::1 c"), both);
  assert.deepEqual(hostsRecords(""), []);
});

test("addresses and ranges", () => {
  const texts: [string, string | undefined][] = [
    ["192.0.2.1", "192.0.2.1"],
    ["::", "::"],
    ["::1", "::1"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["fd85:ee78:d8a6:8607::1:0000", "fd85:ee78:d8a6:8607::1:0"],
    ["::ffff:192.0.2.1", "::ffff:c000:201"],
    ["1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"],
    ["192.0.2.256", undefined],
    ["fe80::1%eth0", undefined],
    ["", undefined],
  ];
  for (const [text, canonical] of texts) {
    const ip = parseIp(text);
    assert.equal(ip && ipText(ip), canonical, text);
  }
  for (const text of ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/8/8", "x/8", "::/129"])
    assert.equal(parseCidr(text), undefined, text);
  assert.equal(cidrText(network(known(parseCidr("10.233.70.5/18")))), "10.233.64.0/18");
  const range = known(parseCidr("10.233.64.0/18"));
  assert.ok(overlaps(range, known(parseCidr("10.233.127.0/24"))));
  assert.ok(!overlaps(range, known(parseCidr("10.233.0.0/18"))));
  assert.ok(!overlaps(known(parseCidr("::/0")), range));
  assert.ok(contains(range, known(parseIp("10.233.64.1"))));
  assert.ok(!contains(range, known(parseIp("10.233.63.255"))));
});
