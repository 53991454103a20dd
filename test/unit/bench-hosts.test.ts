import assert from "node:assert/strict";
import { test } from "node:test";
import { type Form, clusterText } from "../../bench/groups/hosts-files";
import { labClusterYaml } from "../../lab/hosts";
import { judgeCluster } from "../../resources/config";
import { askedOf } from "../../resources/preflight/questions";

const hosts = Array.from({ length: 81 }, (_, i) => ({
  ...{
    name: `node${i + 1}`,
    address: `172.30.0.${i + 1}`,
    port: 22,
    user: "root",
    container: `c${i}`,
    ownDocker: true,
  },
  privateKeyPath: "/lab/key",
}));
const lab = {
  name: "bench",
  dir: "/lab",
  hosts,
  clusterYaml: "",
  sshConfig: "",
  privateKeyPath: "/lab/key",
  knownHostsPath: "/lab/known_hosts",
};

const specOf = (form: Form) => {
  const { cluster, problems } = judgeCluster(clusterText(labClusterYaml(lab), 80, form));
  assert.deepEqual(
    problems.filter(({ severity }) => severity === "error"),
    [],
  );
  assert.ok(cluster);
  return cluster.spec;
};
const checksOf = (form: Form) => {
  const { ports, disk, reach, etcdDir } = askedOf(specOf(form), "node1", (name) => name);
  return { ports: ports.length > 0, disk: Object.keys(disk).length > 0, reach, etcdDir };
};

test("the bench makes 80 hosts ready, and times a preflight that asks them all", () => {
  assert.equal(specOf("ready").hosts.length, 80);
  assert.deepEqual(checksOf("ready"), { ports: false, disk: false, reach: [], etcdDir: undefined });
  assert.deepEqual(checksOf("nodes"), { ports: true, disk: true, reach: [], etcdDir: "/var/lib/etcd" });
  assert.equal(askedOf(specOf("nodes"), "node80", (name) => name).reach[0]?.host, "node1");
});

test("drift is asked of hosts with every component", () => {
  assert.equal(specOf("resolving").extra.resolves.length, 1);
  assert.equal(specOf("ready").extra.resolves.length, 0);
});
