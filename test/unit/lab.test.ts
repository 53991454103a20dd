import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { entryScript } from "../../lab/entry.js";
import { type Lab, labClusterYaml, labFiles, nameServersOf, sshConfig } from "../../lab/files.js";
import { imageTag } from "../../lab/image.js";
import { makeSshKey } from "../../lab/key.js";
import { withLock } from "../../lab/lock.js";
import { labCommand, upOptions } from "../../lab/main.js";
import { addressIn, freeSubnets, parseRange } from "../../lab/network.js";
import { labKubernetes } from "../../lab/kubernetes.js";
import { UsageError } from "../../toolchain/errors.js";
import { alive, owner } from "../../toolchain/owner.js";
import { parseSpec } from "../../resources/config/index.js";
import { type LabOptions, planHosts, planLab, planNetworks } from "../../lab/plan.js";

const place = { name: "demo", privateKeyPath: "/k", ownDocker: true };

function plan(options: LabOptions) {
  const networks = planNetworks(options, "demo").map((network, i) => ({
    ...network,
    subnet: `172.30.${i}.0/24`,
    bridge: `b${i}`,
  }));
  return planLab(options, place, networks);
}

describe("ranges", () => {
  const cases: readonly [string, [number, number] | undefined][] = [
    ["0.0.1.0/24", [256, 511]],
    ["0.0.1.77/24", [256, 511]],
    ["0.0.0.9", [9, 9]],
    ["0.0.0.0/0", [0, 2 ** 32 - 1]],
    ["255.255.255.255", [2 ** 32 - 1, 2 ** 32 - 1]],
    ["default", undefined],
    ["fd00::/8", undefined],
  ];
  for (const [cidr, range] of cases)
    it(cidr, () => assert.deepEqual(parseRange(cidr), range && { first: range[0], last: range[1] }));

  const used: readonly [string, readonly string[], readonly string[]][] = [
    ["nothing in use", [], ["172.30.0.0/24", "172.30.1.0/24"]],
    ["an address in the first", ["172.30.0.9"], ["172.30.1.0/24", "172.30.2.0/24"]],
    ["a wide route over all of the first kind", ["172.16.0.0/12", "default"], ["192.168.255.0/24", "192.168.254.0/24"]],
    ["a narrow route inside the second", ["172.30.1.128/25"], ["172.30.0.0/24", "172.30.2.0/24"]],
  ];
  for (const [what, taken, free] of used) it(what, () => assert.deepEqual(freeSubnets(taken, 2), free));
  it("ranges of one's own take the place of the usual ones", () => {
    assert.deepEqual(freeSubnets([], 1, ["172.30.0.0/16"]), ["192.168.255.0/24"]);
    assert.deepEqual(freeSubnets(["172.30.0.0/16", "192.168.0.0/16", "10.213.0.0/24"], 1, ["10.213.1.0/24"]), [
      "10.213.2.0/24",
    ]);
  });
  it("none is free", () => assert.throws(() => freeSubnets(["0.0.0.0/0"], 1), /no private \/24 subnet is free/));
  it("an address in a subnet", () => assert.equal(addressIn("172.30.7.0/24", 11), "172.30.7.11"));
});

describe("plan", () => {
  it("counts hosts, and lets a host speak for itself", () => {
    const hosts = planHosts({ hosts: ["a", { name: "b", memory: "1g" }], memory: "512m", bastion: true });
    assert.deepEqual(hosts, [
      { name: "a", memory: "512m" },
      { name: "b", memory: "1g" },
      { name: "bastion", memory: "512m" },
    ]);
    assert.deepEqual(
      planHosts({ hosts: 2, prefix: "w" }).map(({ name }) => name),
      ["w1", "w2"],
    );
  });

  const wrong: readonly [string, LabOptions][] = [
    ["no host", { hosts: 0 }],
    ["too many", { hosts: 201 }],
    ["a name twice", { hosts: ["a", "a"] }],
    ["a name that is the bastion's", { hosts: ["bastion"], bastion: true }],
    ["a name that is an option", { hosts: ["-v"] }],
    ["a name with a command", { hosts: ["a;reboot"] }],
  ];
  for (const [what, options] of wrong)
    it(`refuses ${what}`, () => assert.throws(() => planHosts(options), /^UserError/));

  const logins: readonly [LabOptions, Record<string, boolean>][] = [
    [{}, { privateKeyPath: true, password: false, sudoPassword: false }],
    [{ login: "password" }, { privateKeyPath: false, password: true, sudoPassword: false }],
    [{ user: "u" }, { privateKeyPath: true, password: false, sudoPassword: false }],
    [
      { user: "u", sudo: "password" },
      { privateKeyPath: true, password: false, sudoPassword: true },
    ],
    [
      { user: "u", login: "password", sudo: "password" },
      { privateKeyPath: false, password: true, sudoPassword: true },
    ],
  ];
  for (const [options, has] of logins)
    it(`credentials of ${JSON.stringify(options)}`, () => {
      const [first] = plan(options);
      assert.deepEqual(Object.fromEntries(Object.keys(has).map((key) => [key, first && key in first.host])), has);
    });

  it("puts the bastion first on the way in, and nobody else outside", () => {
    const [node, bastion] = plan({ hosts: 1, bastion: "only", secondInterface: true });
    assert.deepEqual(node?.networks, [
      { name: "kubexm-lab-demo", address: "172.30.0.11" },
      { name: "kubexm-lab-demo-2", address: "172.30.1.11" },
    ]);
    assert.equal(node.host.bastion, "bastion");
    assert.equal(bastion?.host.address, "172.30.2.12");
    assert.equal(bastion.networks.length, 3);
  });
});

describe("files of a lab", () => {
  const [node, bastion] = plan({ hosts: 1, bastion: true, user: "u", login: "password" }).map(({ host }) => host);
  assert.ok(node && bastion);
  const lab: Lab = { ...labFiles("demo", "/l"), hosts: [node], bastion };

  it("cluster.yaml names hosts, roles and the way in", () => {
    const { metadata, spec } = parse(labClusterYaml(lab, { network: { plugin: "flannel" } })) as {
      metadata: unknown;
      spec: Record<string, unknown>;
    };
    assert.deepEqual(metadata, { name: "demo" });
    assert.deepEqual(spec, {
      hosts: [
        {
          name: "node1",
          address: node.address,
          user: "u",
          password: node.password,
          bastions: [{ address: bastion.address, user: "u", password: bastion.password }],
        },
      ],
      roleGroups: { etcd: ["node1"], master: ["node1"], worker: ["node1"] },
      ssh: { knownHostsPath: "/l/known_hosts" },
      kubernetes: labKubernetes(),
      ignorePreflight: ["etcd-disk"],
      network: { plugin: "flannel" },
    });
  });

  it("cluster.yaml is one that the product takes, whatever the hosts", () => {
    for (const options of [
      { user: "u", sudo: "password" },
      { login: "password" },
      { secondInterface: true },
    ] as const) {
      const all = plan({ hosts: 3, bastion: true, ...options }).map(({ host }) => host);
      const { spec } = parse(
        labClusterYaml({ ...lab, hosts: all.slice(0, 3), ...(all[3] && { bastion: all[3] }) }),
      ) as {
        spec: unknown;
      };
      assert.doesNotThrow(() => parseSpec("demo", spec));
    }
  });

  it("ssh_config jumps through the bastion", () =>
    assert.match(sshConfig(lab), /Host node1\n[^H]*HostName[^]*ProxyJump bastion/));

  const resolvers: readonly [string[], string[]][] = [
    [["nameserver 192.0.2.1\nnameserver ::1\n"], ["192.0.2.1"]],
    [["nameserver 127.0.0.53\n", "# x\nnameserver 192.0.2.7\n"], ["192.0.2.7"]],
    [["nameserver 127.0.0.1\n", ""], []],
  ];
  for (const [files, servers] of resolvers)
    it(`name servers of ${JSON.stringify(files)}`, () => assert.deepEqual(nameServersOf(...files), servers));

  it("quotes what goes into the entry script", () => {
    const script = entryScript({ name: "a", publicKey: "it's", nameServers: [], user: "u", password: "'; reboot" });
    assert.ok(script.includes(`echo 'u:'\\''; reboot' | chpasswd`));
    assert.ok(script.includes(`echo 'it'\\''s'`));
    assert.ok(!script.includes("nft flush"));
  });
});

describe("keys, locks, owners, images", () => {
  it("makes keys that OpenSSL agrees with", () => {
    const { privateKey, publicKey } = makeSshKey("c");
    const blob = Buffer.from(privateKey.replaceAll(/-----.*-----|\n/g, ""), "base64");
    const open = Buffer.from(publicKey.split(" ")[1] ?? "", "base64").subarray(-32);
    const at = blob.lastIndexOf(open);
    const secret = blob.subarray(at - 32, at);
    const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), secret]);
    const again = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" })).export({
      format: "jwk",
    });
    assert.equal(again.x, open.toString("base64url"));
  });

  it("lets one in at a time", async () => {
    let inside = 0;
    const most: number[] = [];
    const work = () =>
      withLock("unit-test", async () => {
        most.push(++inside);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside--;
      });
    await Promise.all([work(), work(), work()]);
    assert.deepEqual(most, [1, 1, 1]);
  });

  it("tells a living owner from a dead one", () => {
    assert.equal(alive(owner()), true);
    const [pid, start, boot] = owner().split("-");
    assert.equal(alive(`${pid}-${Number(start) - 1}-${boot}`), false);
    assert.equal(alive(`${pid}-${start}-0`), false);
    assert.equal(alive("999999999-1-0"), false);
    assert.equal(alive(""), false);
  });

  it("names an image by what is in it", () => {
    assert.equal(imageTag({ packages: ["fish", "tree"] }), imageTag({ packages: ["tree", "fish", "tree"] }));
    assert.equal(imageTag({ withPython: true }), imageTag({ packages: ["python3"] }));
    assert.equal(imageTag({ packages: [] }), imageTag());
    assert.notEqual(imageTag({ packages: ["fish"] }), imageTag());
  });
});

describe("lab up's options", () => {
  const cases: readonly [string[], LabOptions][] = [
    [[], { hosts: 1 }],
    [["--hosts", "3", "--name", "demo", "--memory", "512m"], { hosts: 3, name: "demo", memory: "512m" }],
    [["--hosts", "a,b"], { hosts: ["a", "b"] }],
    [["--user", "u", "--password", "--sudo-password"], { hosts: 1, user: "u", login: "password", sudo: "password" }],
    [["--bastion", "--only"], { hosts: 1, bastion: "only" }],
    [
      ["--sshd", "MaxSessions 2", "--sshd", "MaxStartups=3:30:5"],
      { hosts: 1, sshd: { MaxSessions: "2", MaxStartups: "3:30:5" } },
    ],
    [
      ["--second-interface", "--python", "--package", "fish"],
      { hosts: 1, secondInterface: true, withPython: true, packages: ["fish"] },
    ],
    [["--range", "10.20.0.0/16", "--range", "10.21.0.0/16"], { hosts: 1, ranges: ["10.20.0.0/16", "10.21.0.0/16"] }],
  ];
  for (const [argv, options] of cases) it(argv.join(" ") || "none", () => assert.deepEqual(upOptions(argv), options));
  for (const argv of [
    ["--only"],
    ["--sudo-password"],
    ["--sshd", "MaxSessions"],
    ["--what"],
    ["stray"],
    ["--range", "10.0.0.0"],
    ["--range", "fd00::/8"],
  ])
    it(`refuses ${argv.join(" ")}`, () => assert.throws(() => upOptions(argv), /kubexm lab --help/));
});

describe("a command line that is not understood is one line, and exit code 2", () => {
  const rows: readonly (readonly string[])[] = [
    ["bogus"],
    ["up", "--bogus"],
    ["down", "--bogus"],
    ["ssh"],
    ["compare", "node1"],
    ["mirror", "--bogus"],
    ["balancer", "serve", "--bogus"],
    ["balancer"],
  ];
  for (const argv of rows)
    it(argv.join(" "), async () => {
      await assert.rejects(labCommand(argv), (error) => {
        assert.ok(error instanceof UsageError);
        assert.equal(error.code, 2);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      });
    });
  for (const argv of [["-h"], ["up", "-h"], ["down", "--help"], ["ssh", "--help"], ["mirror", "-h"]])
    it(`${argv.join(" ")} helps`, async (t) => {
      const said = t.mock.method(console, "log", () => undefined);
      assert.equal(await labCommand(argv), 0);
      assert.match(String(said.mock.calls[0]?.arguments[0]), /^(usage|kubexm lab mirror): /);
    });
});
