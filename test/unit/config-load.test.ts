import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  ConfigError,
  UnreadableError,
  clusterName,
  parseCluster,
  parseSpec,
  plainName,
  readCluster,
} from "../../resources/config/index";
import { hostsLines } from "../../resources/modules/names";
import { askedOf, backwardsOf } from "../../resources/preflight/questions";
import { said, small } from "../harness/cluster-text";

// Compiled tests run from dist/test/unit; the fixtures stay where they are written.
const fixture = (name: string) => readFileSync(join(process.cwd(), "test", "unit", "fixtures", name), "utf8");
const seed = fixture("cluster-seed.yaml");
const corrected = fixture("cluster-corrected.yaml");

test("the seeds' example, its slips corrected, is a cluster with all optional parts", () => {
  const { name, spec } = parseCluster(corrected, "cluster.yaml");
  assert.equal(name, "mycluster");
  assert.equal(spec.hosts.length, 12);
  assert.deepEqual(spec.kubernetes.containerRuntime.containerd, {
    version: "1.7.6",
    registryMirrors: ["aliyun.com"],
    insecureRegistries: ["aaa.com"],
    existing: "refuse",
    config: {},
  });
  assert.ok(spec.kubernetes.kata.enabled && spec.kubernetes.nodeFeatureDiscovery.enabled);
  assert.equal(spec.host, "192.168.1.100 bhy.example.com");
  assert.equal(spec.dns.coredns.externalZones.length, 3);
  assert.deepEqual(spec.dns.nodelocaldns.externalZones[2]?.rewrite, [
    "name substring website.tld website.namespace.svc.cluster.local",
  ]);
  assert.deepEqual(spec.dns.coredns.upstreamDNSServers, ["8.8.8.8", "1.2.4.8", "114.114.114.114"]);
  assert.equal(spec.registry.auths["dockerhub.kubexm.local"]?.username, "xxx");
  assert.equal(spec.etcd.type, "kubexm");
  assert.equal(spec.kubernetes.proxyMode, "ipvs");
});

test("what is read can be read again: a file's cluster is a program's too", () => {
  const { spec } = parseCluster(corrected, "cluster.yaml");
  assert.deepEqual(parseSpec("mycluster", spec), spec);
});

/** Without what is right, and comes with a later version. */
const mistakes = (text: string) => said(text).filter((problem) => !problem.includes("this version of kubexm makes"));

test("each slip of the seeds' example is told of as it stands, with line and column", () => {
  const slips = mistakes(seed);
  const expected = [
    'f:15:57 spec.hosts[3].internalAddress: "172.16.0.5,2022::4": 2022::4 belongs to node3',
    'f:20:59 spec.hosts[8].internalAddress: "172.16.0.10,2022::3": 2022::3 belongs to node2',
    'f:34:7 spec.roleGroups.worker[1]: "node[8:10]": node9 is not among hosts',
    'f:53:27 spec.controlPlaneEndpoint.internalLoadbalancer: "haproxy| nginx | kube-vip": must be one of',
    'f:61:17 spec.controlPlaneEndpoint.lb_address: "": the virtual address for the load balancer is missing',
    'f:91:14 "version：": a full-width colon stands here; write version:',
    'f:92:17 "containerd：": a full-width colon stands here; write containerd:',
    'f:93:16 "version：": a full-width colon stands here; write version:',
    "f:112:25 spec.kubernetes.featureGates.ExpandCSIVolumes: true: Kubernetes does not know this gate",
  ];
  for (const text of expected)
    assert.ok(
      slips.some((slip) => slip.startsWith(text)),
      `${text}\n${slips.join("\n")}`,
    );
  assert.equal(slips.length, 19);
});

test("the optional part without its colon is told of", () => {
  const text = corrected.replace("nodeFeatureDiscovery:", "nodeFeatureDiscovery");
  const line = text.split("\n").findIndex((row) => /nodeFeatureDiscovery$/.test(row)) + 1;
  assert.ok(
    said(text).some((slip) => slip.startsWith(`f:${line}:5 a key without its colon`)),
    said(text).join("\n"),
  );
});

test("a dash without a blank is the only fault told of where lines go astray by it; else, all are", () => {
  const astray = small.replace(
    "- { name: m1, address: 192.0.2.1 }",
    "- name: m1\n    -name: w1\n     address: 192.0.2.2",
  );
  assert.deepEqual(
    said(astray).map((problem) => problem.split(" ")[0]),
    ["f:8:5"],
  );
  const wrong = small.replace("- { name: m1, address", "-{ name: m1, adress");
  assert.deepEqual(
    said(wrong).map((problem) => problem.split(" ")[0]),
    ["f:7:5", "f:7:18"],
  );
});

test("a dash that belongs to a value is left alone", () => {
  const text = `${small}  kubernetes:\n    podPidsLimit:\n      -1\n    kubeletArgs:\n      - --v=2\n  host: |\n    192.0.2.7 a\n    -name: no key\n`;
  assert.deepEqual(said(text.replace("-name: no key", "# -name: no key")), []);
  assert.match(said(text).join("\n"), /^f:15:9 spec\.host: .*-name: is not a record of a hosts file[^\n]*$/);
});

test("signs that look alike are left alone in quotes, comments and text blocks", () => {
  const text = `${small}  # note：“x”\n  host: "192.0.2.7 a" # 名字： b\n  dns:\n    coredns:\n      additionalConfigs: |\n        # zone： “x”，y\n`;
  assert.deepEqual(mistakes(text), []);
  assert.equal(parseCluster(text, "f").spec.dns.coredns.additionalConfigs, "# zone： “x”，y\n");
});

test("after look-alikes, lines and columns are those of the file", () => {
  const text = small.replace("m1, address: 192.0.2.1", "m1, address：192.0.2.1, prot: 1");
  assert.deepEqual(
    said(text).map((problem) => problem.split(" ")[0]),
    ["f:7:26", "f:7:38"],
  );
});

test("CRLF and BOM change nothing", () => {
  const plain = parseCluster(small, "f");
  assert.deepEqual(parseCluster(`\ufeff${small.replaceAll("\n", "\r\n")}`, "f"), plain);
  const faulty = small.replace("address", "adress");
  assert.deepEqual(said(`\ufeff${faulty.replaceAll("\n", "\r\n")}`), said(faulty));
});

test("every problem comes in one go, those between fields too", () => {
  const problems = said(
    `${small}    worker: [m9]\n  etcd: { typ: kubeadm }\n  network: { kubePodsCIDR: 10.234.1.0/18 }\n`,
  );
  assert.equal(problems.length, 3, problems.join("\n"));
});

test("values come from the environment and the stack's configuration", () => {
  const text = small.replace(
    "192.0.2.1 }",
    '"${env:ADDRESS}", port: "${env:PORT}", password: "a${config:pass}", sudoPassword: "${config:number}" }',
  );
  const sources = { env: { ADDRESS: "192.0.2.7", PORT: "2222" }, config: { pass: "b", number: "123" } };
  const { address, port, password, sudoPassword } = { ...parseCluster(text, "f", sources).spec.hosts[0] };
  assert.deepEqual([address, port, password, sudoPassword], ["192.0.2.7", 2222, "ab", "123"]);

  const missing = said(text, { env: { ADDRESS: "192.0.2.7" } });
  assert.match(
    missing[0] ?? "",
    /^f:7:52 spec\.hosts\[0\]\.port: "\$\{env:PORT\}": the environment variable PORT is not set/,
  );
  assert.match(missing[1] ?? "", /has no pass; write kubexm config set --secret pass, /);
  assert.equal(missing.length, 3, missing.join("\n"));
});

test("a place for a value that is written otherwise is no password", () => {
  const [problem, ...more] = said(small.replace("192.0.2.1 }", '192.0.2.1, password: "${ENV:PASS}" }'));
  assert.match(problem ?? "", /password: .*: is taken as it stands; write \$\{env:PASS\}$/);
  assert.deepEqual(more, []);
});

test("a secret value stands only where the state keeps it encrypted", () => {
  const sources = { config: { p: "hush", a: "192.0.2.7" }, secrets: ["p"] };
  const good = small.replace("192.0.2.1 }", '"${config:a}", password: "${config:p}" }');
  assert.equal(parseCluster(good, "f", sources).spec.hosts[0]?.password, "hush");
  const [said1, ...more] = said(small.replace("192.0.2.1 }", '"${config:p}" }'), sources);
  assert.match(said1 ?? "", /^f:7:28 .*"\$\{config:p\}": is a secret, .*set p without --secret$/);
  assert.deepEqual(more, []);
});

test("a value that the configuration does not have is told of with what sets it where it stands", () => {
  const [problem] = said(small.replace("name: prod", "name: ${config:nope}"), { config: {} });
  assert.match(
    problem ?? "",
    /^f:4:9 metadata\.name: "\$\{config:nope\}": the stack's configuration has no nope; write kubexm config set nope VALUE, /,
  );
});

test("advice names the cluster file where another than the usual one would be taken", () => {
  const text = small.replace("name: prod", "name: ${config:nope}");
  const advice = (file: string) => {
    try {
      parseCluster(text, file, { config: {} });
    } catch (error) {
      return /write (.*), or in/.exec(String(error))?.[1];
    }
    return undefined;
  };
  assert.equal(advice("cluster.yaml"), "kubexm config set nope VALUE");
  assert.equal(advice("my room/prod.yaml"), 'kubexm config set nope VALUE -f "my room/prod.yaml"');
});

test("files of this machine that are named without a folder stand beside the cluster file, wherever one works", () => {
  const login =
    "192.0.2.1, privateKeyPath: keys/id, knownHostsPath: ~/known, bastions: [{ address: b, privateKeyPath: /k }] }";
  const more = `  mirrors:
    imageArchives: [a.tar, ../b.tar]
    files: [{ url: 'https://m', caPath: ca.crt }]
    images: [{ registry: docker.io, url: 'https://m', caPath: ca.crt }]
  etcd:
    type: external
    external: { endpoints: ['https://192.0.2.9:2379'], caFile: ca, certFile: cert, keyFile: /key }
`;
  const { hosts, mirrors, etcd } = parseCluster(
    small.replace("192.0.2.1 }", login) + more,
    "/srv/prod/cluster.yaml",
  ).spec;
  const [one] = hosts;
  assert.deepEqual(
    [one?.privateKeyPath, one?.knownHostsPath, one?.bastions[0]?.privateKeyPath, one?.address, one?.labels],
    ["/srv/prod/keys/id", "~/known", "/k", "192.0.2.1", {}],
  );
  assert.deepEqual(mirrors.imageArchives, ["/srv/prod/a.tar", "/srv/b.tar"]);
  assert.equal(mirrors.files[0]?.caPath, "/srv/prod/ca.crt");
  assert.equal(mirrors.images[0]?.caPath, "/srv/prod/ca.crt");
  const { caFile, certFile, keyFile } = { ...etcd.external };
  assert.deepEqual([caFile, certFile, keyFile], ["/srv/prod/ca", "/srv/prod/cert", "/key"]);
});

test("a cluster's name is found in a file that is wrong otherwise", () => {
  assert.equal(clusterName(`${small}  nonsense: 1\n`), "prod");
  for (const text of ["", "[1]", "metadata: 1", "metadata: { name: [a] }"]) assert.equal(clusterName(text), undefined);
});

test("a name that stands as in nearly every file is found without a parser, and is the one that the parser finds", () => {
  const rows: readonly [string, string | undefined][] = [
    [small, "prod"],
    [seed, "mycluster"],
    ["kind: Cluster\r\nmetadata: \r\n    name: a-1\r\nspec: {}\r\n", "a-1"],
    ["---\nmetadata:\n  name: own\n\nspec: {}\n", "own"],
    ["about: |\n metadata:\n   name: other\nmetadata:\n  name: own\nspec: {}\n", undefined],
    ["metadata: { name: own }\n---\nmetadata:\n  name: other\nspec: {}\n", undefined],
    ["kind: Cluster\n---\nmetadata:\n  name: other\nspec: {}\n", undefined],
    ["metadata:\n  name: own\nmetadata:\n  name: other\nspec: {}\n", undefined],
    ["metadata:\n  name: own\n    more\nspec: {}\n", undefined],
    ["metadata:\n  name: own\n  name: other\nspec: {}\n", undefined],
    ["about:\n  metadata:\n    name: other\n", undefined],
    ["metadata:\n  labels: { a: b }\n  name: own\n", undefined],
    ["metadata: { name: own }\n", undefined],
    ["metadata:\n  name: ${env:NAME}\nspec: {}\n", undefined],
    ['metadata:\n  name: "own"\nspec: {}\n', undefined],
    ["metadata:\n  name: own name\nspec: {}\n", undefined],
    ["metadata:\n  name: own # as ever\nspec: {}\n", undefined],
    ["metadata:\n  name: true\nspec: {}\n", undefined],
    ["metadata:\n  name: null\nspec: {}\n", undefined],
    ["", undefined],
  ];
  for (const [text, name] of rows) {
    assert.equal(plainName(text), name, text);
    if (name !== undefined) assert.equal(clusterName(text), name, text);
  }
});

test("values of the configuration that are not at hand count as right", () => {
  const text = small.replace("192.0.2.1 }", '"${config:address}", password: "${config:p}" }');
  assert.deepEqual(said(text, { config: "later" }), []);
});

test("secrets, and what came from elsewhere, are never shown", () => {
  const text = small.replace("192.0.2.1 }", '"${env:A}", password: 12345, privateKeyPath: [hush] }');
  const all = said(text, { env: { A: "hidden value" } }).join("\n");
  assert.match(all, /\$\{env:A\}/);
  assert.doesNotMatch(all, /hidden/);
  assert.match(all, /password: "\*\*\*": must be text/);
});

test("a YAML bomb is refused in little time and memory", () => {
  const rows = Array.from({ length: 12 }, (_, i) => `x${i + 1}: &x${i + 1} [${`*x${i}, `.repeat(10)}]`);
  const text = `x0: &x0 [a, b]\n${rows.join("\n")}\n${small}`;
  assert.match(said(text)[0] ?? "", /^f:\d+:\d+ aliases expand to more than 100000 values/);
});

test("nesting without end is refused before the parser takes it up", () => {
  for (const text of ["[".repeat(200_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "? ".repeat(100_000)])
    assert.match(said(text)[0] ?? "", /^f:1:\d+ sections stand within sections more than 64 deep/);
  const stairs = Array.from({ length: 500 }, (_, i) => `${" ".repeat(i)}a:`).join("\n");
  assert.match(said(stairs)[0] ?? "", /^f:65:\d+ sections stand within/);
});

test("ten thousand hosts are parsed, and what is asked of each and written for each is planned", (t) => {
  const rows = Array.from(
    { length: 10_000 },
    (_, i) => `    - { name: w${i}, address: 10.${i >> 16}.${(i >> 8) & 255}.${i & 255} }`,
  );
  const text = small
    .replace("  roleGroups:", `${rows.join("\n")}\n  roleGroups:\n    worker: ["w[0:9999]"]`)
    .concat(
      "  network: { kubePodsCIDR: 172.16.0.0/12, kubeServiceCIDR: 192.168.0.0/16 }\n  kubernetes: { nodeCidrMaskSize: 26, maxPods: 60 }\n",
    );
  const start = performance.now();
  const { spec } = parseCluster(text, "f");
  const parsed = performance.now();
  const asked = spec.hosts.map(({ name }) => askedOf(spec, name, (host) => host));
  const lines = hostsLines(spec, {});
  const { to } = backwardsOf(spec);
  const planned = performance.now();
  t.diagnostic(`parsed in ${Math.round(parsed - start)} ms, planned in ${Math.round(planned - parsed)} ms`);
  assert.equal(spec.hosts.length, 10_001);
  assert.equal(to.length, 10_000);
  assert.equal(lines.length, 10_002);
  assert.deepEqual(
    asked.map(({ roles, reach }) => `${roles.join()} ${reach.map(({ host }) => host).join()}`),
    ["etcd,master ", ...rows.map(() => "worker m1")],
  );
});

/** A generator that gives the same numbers in every run. */
function numbers(seed: number) {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const SCRAPS = [
  ...Array.from("：，“\t\u00a0{}[]&*!|>'\"%@`#:-? \n\0"),
  "\r\n",
  "- ",
  ": ",
  "&a ",
  "*a",
  "!!binary ",
  "<<: *a",
  "${env:",
  "${config:X}",
  "__proto__: 1",
  "null",
  "~",
  ".nan",
  "1e999",
  "0x7fffffffffffffff",
  "yes",
  "\ufeff",
  "\ud800",
  "constructor: {}",
  "---\n",
  "  ",
];

function mutate(text: string, next: (below: number) => number): string {
  const at = next(text.length);
  const length = next(30);
  const rows = text.split("\n");
  const row = next(rows.length);
  const kinds: (() => string)[] = [
    () => text.slice(0, at) + (SCRAPS[next(SCRAPS.length)] ?? "") + text.slice(at),
    () => text.slice(0, at) + text.slice(at + length),
    () => text.slice(0, at) + text.slice(at, at + length) + text.slice(at),
    () => rows.toSpliced(row, 1).join("\n"),
    () => rows.toSpliced(row, 0, rows[next(rows.length)] ?? "").join("\n"),
    () => rows.with(row, ` ${rows[row] ?? ""}`).join("\n"),
    () => rows.with(row, (rows[row] ?? "").replace(/:.*/, `: ${SCRAPS[next(SCRAPS.length)] ?? ""}`)).join("\n"),
    () => text.slice(0, at),
  ];
  return kinds[next(kinds.length)]?.() ?? text;
}

test("a thousand mutated files: a cluster, or problems with line and column, and nothing else", (t) => {
  let refused = 0;
  for (let seed = 1; seed <= 1000; seed++) {
    const next = numbers(seed);
    let text = seed % 2 === 0 ? corrected : small;
    for (let i = 0; i <= next(3); i++) text = mutate(text, next);
    try {
      parseCluster(text, "f");
    } catch (error) {
      refused += 1;
      assert.ok(
        error instanceof ConfigError,
        `seed ${seed}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`,
      );
      const rows = text.split("\n").length;
      assert.ok(error.problems.length > 0, `seed ${seed}`);
      for (const { line = 0, col = 0, message } of error.problems)
        assert.ok(line >= 1 && line <= rows && col >= 1 && message !== "", `seed ${seed}: ${error.message}`);
      for (const line of error.message.split("\n")) assert.match(line, /^f:\d+:\d+ |^… and \d+ more$/, `seed ${seed}`);
    }
  }
  t.diagnostic(`${refused} of 1000 refused`);
  assert.ok(refused > 500 && refused < 1000);
});

test("a file that cannot be read is one line", () => {
  const folder = mkdtempSync(join(tmpdir(), "kubexm-config-"));
  try {
    assert.throws(
      () => readCluster(join(folder, "none.yaml")),
      (error: Error) => {
        assert.ok(error instanceof UnreadableError);
        assert.match(error.message, /none\.yaml: there is no such file; name the cluster file with -f$/);
        return true;
      },
    );
    assert.throws(() => readCluster(folder), /it is a folder/);
    const file = join(folder, "cluster.yaml");
    writeFileSync(file, small);
    assert.equal(parseCluster(readCluster(file), file).name, "prod");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a program's problems have paths without lines", () => {
  assert.throws(() => parseSpec("prod", { hosts: [{ name: "m1", address: 5 }], roleGroups: { master: ["m2"] } }), {
    name: "ConfigError",
    message:
      'cluster prod: hosts[0].address: 5: must be text; write "5" in quotes\n' +
      'cluster prod: roleGroups.master[0]: "m2": m2 is not among hosts; write m1, or add the host',
  });
  assert.throws(
    () => parseSpec("Prod 1", { hosts: [{ name: "m1", address: "192.0.2.1" }], roleGroups: { master: ["m1"] } }),
    /cluster Prod 1: is not a cluster's name/,
  );
});
