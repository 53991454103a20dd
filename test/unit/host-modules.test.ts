import * as pulumi from "@pulumi/pulumi";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Cluster } from "../../resources/cluster";
import { parseSpec, type ClusterInput, type Role } from "../../resources/config";
import { componentsPage } from "../../resources/modules/docs";
import { hostsLines } from "../../resources/modules/names";
import { nodeModules, nodeParameters, parameters } from "../../resources/modules/node-kernel";
import { portsFor } from "../../resources/modules/ports";

const cluster = (more: Partial<ClusterInput> = {}) =>
  parseSpec("test", {
    hosts: [
      { name: "m1", address: "192.0.2.1" },
      { name: "w1", address: "192.0.2.2" },
    ],
    roleGroups: { master: ["m1"], etcd: ["m1"], worker: ["w1"] },
    kubernetes: { version: "v1.35.4" },
    ...more,
  });

describe("what a cluster needs of a host", () => {
  const always = ["10250/tcp", "30000-32767/tcp", "30000-32767/udp"];
  const balanced = { externalLoadBalancer: "kubexm", lb_address: "192.0.2.9", port: 8443 } as const;
  const rows: readonly [readonly Role[], Partial<ClusterInput>, readonly string[]][] = [
    [["worker"], {}, [...always, "8472/udp"]],
    [["master", "etcd"], {}, ["2379-2380/tcp", "6443/tcp", "10257/tcp", "10259/tcp", ...always, "8472/udp"]],
    [["etcd"], {}, ["2379-2380/tcp"]],
    [["worker"], { network: { plugin: "flannel", flannel: { backendMode: "host-gw" } } }, always],
    [["worker"], { network: { plugin: "calico" } }, [...always, "179/tcp", "5473/tcp"]],
    [
      ["worker"],
      { network: { plugin: "calico", calico: { ipipMode: "Never", vxlanMode: "Always" } } },
      [...always, "4789/udp", "5473/tcp"],
    ],
    [["worker"], { network: { plugin: "cilium" } }, [...always, "8472/udp", "4240/tcp"]],
    [["registry"], { registry: { privateRegistry: "hub.example.com:5000" } }, ["5000/tcp"]],
    [["registry"], {}, ["443/tcp"]],
    [["loadbalancer"], { controlPlaneEndpoint: balanced }, ["8443/tcp"]],
    [[], {}, []],
  ];
  for (const [roles, more, wanted] of rows)
    test(`ports of ${roles.join(" and ") || "no role"} with ${JSON.stringify(more)}`, () => {
      const { registry, controlPlaneEndpoint } = cluster();
      const spec = {
        ...cluster(more.network ? { network: more.network } : {}),
        registry: { ...registry, ...(more.registry as Partial<typeof registry>) },
        controlPlaneEndpoint: {
          ...controlPlaneEndpoint,
          ...(more.controlPlaneEndpoint as Partial<typeof controlPlaneEndpoint>),
        },
      };
      assert.deepEqual(portsFor(spec, roles).sort(), [...wanted].sort());
    });

  test("the endpoint's name stands in the hosts file, unless one's own DNS has it", () => {
    const named = (controlPlaneEndpoint: ClusterInput["controlPlaneEndpoint"]) =>
      hostsLines(cluster({ controlPlaneEndpoint }), {}).filter((line) => line.endsWith(" api.example.com"));
    const domain = "api.example.com";
    assert.deepEqual(named({ domain }), [`192.0.2.1 ${domain}`]);
    assert.deepEqual(named({ domain, externalLoadBalancer: "external", lb_address: "192.0.2.9" }), [
      `192.0.2.9 ${domain}`,
    ]);
    assert.deepEqual(named({ domain, externalLoadBalancer: "external", externalDNS: true }), []);
  });
  test("IPv6 is forwarded only where pods have it", () => {
    const { network } = cluster();
    const dual = { ...network, kubePodsCIDR: "10.0.0.0/16,fd00::/112" };
    assert.ok(!("net.ipv6.conf.all.forwarding" in nodeParameters(cluster())));
    assert.equal(nodeParameters({ network: dual })["net.ipv6.conf.all.forwarding"], 1);
  });
  test("every kernel parameter has its reason, and stands once", () => {
    assert.equal(new Set(parameters.map(({ name }) => name)).size, parameters.length);
    for (const { name, why } of parameters) assert.ok(why.length > 10, name);
  });
  test("modules of IPVS only where it is used", () => {
    assert.deepEqual(nodeModules(cluster()), ["overlay", "br_netfilter"]);
    assert.ok(nodeModules(cluster({ kubernetes: { version: "v1.34.1", proxyMode: "ipvs" } })).includes("ip_vs"));
  });
});

test("a host costs three resources, four with more DNS servers; who serves time asks the world only", async () => {
  const made: { name: string; inputs: Record<string, unknown> }[] = [];
  await pulumi.runtime.setMocks({
    newResource: ({ name, type, inputs }) => {
      if (type.startsWith("pulumi-nodejs:")) made.push({ name, inputs: inputs as Record<string, unknown> });
      return { id: name, state: inputs as Record<string, unknown> };
    },
    call: () => ({}),
  });
  new Cluster("c", {
    hosts: [
      { name: "m1", address: "192.0.2.1", port: 2222 },
      { name: "w1", address: "192.0.2.2" },
    ],
    roleGroups: { master: ["m1"], worker: ["w1"] },
    kubernetes: { version: "v1.35.4" },
    system: { ntpServers: ["ntp.example.com", "m1"] },
    extra: { resolves: [{ address: "192.0.2.53" }] },
  });
  await pulumi.runtime.disconnect();
  const parts = (host: string) =>
    made
      .map(({ name }) => name)
      .filter((name) => name.startsWith(`c-${host}-`))
      .map((name) => name.slice(5))
      .sort();
  const ready = ["chrony", "packages", "resolver", "system"];
  for (const host of ["m1", "w1"])
    assert.deepEqual(
      parts(host).filter((part) => ready.includes(part)),
      ready,
    );
  const inputs = (name: string) => made.find((item) => item.name === name)?.inputs ?? {};
  assert.deepEqual(inputs("c-m1-chrony")["servers"], ["ntp.example.com"]);
  assert.deepEqual(inputs("c-w1-chrony")["servers"], ["ntp.example.com", "m1"]);
  const ports = inputs("c-m1-system")["ports"] as string[];
  assert.ok(ports.includes("2222/tcp") && ports.includes("6443/tcp"), ports.join(" "));
});

test("docs/components.md is what npm run docs writes", () => {
  const page = readFileSync(join(__dirname, "../../../docs/components.md"), "utf8");
  assert.equal(page, componentsPage());
});
