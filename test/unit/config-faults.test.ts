import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, parseCluster } from "../../resources/config/index";
import { said, small } from "../harness/cluster-text";

/** A change of the small cluster, and how the first problem begins. */
const FAULTS: [string, (text: string) => string, RegExp][] = [
  [
    "unknown key",
    (t) => t.replace("address:", "adress:"),
    /^f:7:19 spec\.hosts\[0\]\.adress: is not a key of this section; write address/,
  ],
  [
    "missing key",
    (t) => t.replace(", address: 192.0.2.1", ""),
    /^f:7:7 spec\.hosts\[0\]\.address: is missing; write for example 192\.0\.2\.10/,
  ],
  ["missing section", (t) => t.replace(/ {2}roleGroups:\n.*\n/, ""), /^f:5:1 spec\.roleGroups: is missing/],
  [
    "unknown check",
    (t) => `${t}  ignorePreflight: [swop]\n`,
    /^f:10:21 spec\.ignorePreflight\[0\]: "swop": must be one of os, arch, .*, firewall; write swap$/,
  ],
  [
    "wrong choice",
    (t) => `${t}  etcd: { type: kubeadmin }\n`,
    /^f:10:17 spec\.etcd\.type: "kubeadmin": must be one of kubexm, kubeadm, external; write kubeadm/,
  ],
  [
    "number wanted",
    (t) => t.replace("192.0.2.1 }", "192.0.2.1, port: 22x }"),
    /^f:7:45 spec\.hosts\[0\]\.port: "22x": must be a number/,
  ],
  ["number in quotes", (t) => t.replace("192.0.2.1 }", '192.0.2.1, port: "22" }'), /write 22 without quotes/],
  ["number too large", (t) => t.replace("192.0.2.1 }", "192.0.2.1, port: 70000 }"), /70000: must be at most 65535/],
  ["number not whole", (t) => t.replace("192.0.2.1 }", "192.0.2.1, port: 2.5 }"), /must be a whole number/],
  [
    "text wanted",
    (t) => `${t}  kubernetes: { version: 1.30 }\n`,
    /^f:10:26 spec\.kubernetes\.version: 1\.3: must be text, and "1\.30" is not a version of three numbers; write for example v1\.35\.4$/,
  ],
  [
    "text wanted, right but for its quotes",
    (t) => t.replace("name: prod", "name: 2024"),
    /^f:4:9 metadata\.name: 2024: must be text; write "2024" in quotes$/,
  ],
  [
    "text wanted that nobody may see",
    (t) => t.replace("192.0.2.1 }", "192.0.2.1, password: 12345 }"),
    /^f:7:49 spec\.hosts\[0\]\.password: "\*\*\*": must be text; write it in quotes$/,
  ],
  [
    "section wanted, of the one value that stands there",
    (t) => `${t}  extra: { resolves: [8.8.8.8] }\n`,
    /^f:10:23 spec\.extra\.resolves\[0\]: "8\.8\.8\.8": must be a section .*; write for example \{ address: 8\.8\.8\.8 \}$/,
  ],
  [
    "section wanted, of several values",
    (t) => t.replace("{ name: m1, address: 192.0.2.1 }", "m1"),
    /^f:7:7 spec\.hosts\[0\]: "m1": must be a section .*; write for example \{ name: node1, address: 192\.0\.2\.10 \}$/,
  ],
  [
    "section wanted, in which nothing must stand",
    (t) => `${t}  etcd: kubeadm\n`,
    /^f:10:9 spec\.etcd: "kubeadm": must be a section \(`key: value` lines\)$/,
  ],
  [
    "dash without a blank",
    (t) => t.replace("- { name: m1, address: 192.0.2.1 }", "-name: m1\n     address: 192.0.2.1"),
    /^f:7:5 "-name": a dash without a blank after it stands here; write - name$/,
  ],
  [
    "dash without a blank before a bracket",
    (t) => t.replace("- {", "-{"),
    /^f:7:5 "-\{": a dash without a blank after it stands here; write - \{$/,
  ],
  ["switch", (t) => `${t}  kubernetes: { autoRenewCerts: yes }\n`, /"yes": must be true or false; write true/],
  ["empty value", (t) => `${t}  etcd:\n`, /^f:10:\d+ spec\.etcd: null: is empty; write a section/],
  [
    "empty list",
    (t) => t.replace(/hosts:\n.*\n/, "hosts: []\n"),
    /^f:6:10 spec\.hosts: \[\]: needs at least 1 entry; write it as a line `- value`/,
  ],
  [
    "feature gate",
    (t) => `${t}  kubernetes: { featureGates: { rotate: true } }\n`,
    /featureGates\.rotate: is not a feature gate's name .*; write for example Rotate/,
  ],
  [
    "one of two forms",
    (t) => `${t}  controlPlaneEndpoint: { lb_address: lb.example.com }\n`,
    /"lb\.example\.com": is not an IP address; write for example 192\.0\.2\.10/,
  ],
  [
    "other apiVersion",
    (t) => t.replace("v1alpha1", "v2"),
    /^f:1:13 apiVersion: "kubexm\.mensylisir\.io\/v2": must be kubexm\.mensylisir\.io\/v1alpha1/,
  ],
  [
    "label's key",
    (t) => t.replace("192.0.2.1 }", "192.0.2.1, labels: { -x: y } }"),
    /^f:7:49 spec\.hosts\[0\]\.labels\["-x"\]: is not a label's key/,
  ],
  [
    "taint",
    (t) => t.replace("192.0.2.1 }", "192.0.2.1, taints: [a=b] }"),
    /spec\.hosts\[0\]\.taints\[0\]: "a=b": is not a taint key=value:Effect/,
  ],
  [
    "login in an image mirror's address",
    (t) => `${t}  mirrors: { images: [{ registry: quay.io, url: "https://me:hush@mirror" }] }\n`,
    /^f:10:49 spec\.mirrors\.images\[0\]\.url: "https:\/\/\*\*\*@mirror": holds a login, .*registry\.auths/,
  ],
  [
    "login in a mirror of docker.io",
    (t) => `${t}  kubernetes: { containerRuntime: { containerd: { registryMirrors: ["https://me:hush@mirror"] } } }\n`,
    /registryMirrors.*: .*"https:\/\/\*\*\*@mirror".*: holds a login, .*registry\.auths/,
  ],
  [
    "address that is none, its login not shown",
    (t) => `${t}  mirrors: { files: [{ url: "htps://me:hush@mirror" }] }\n`,
    /"htps:\/\/\*\*\*@mirror": is not an http:\/\/ or https:\/\/ address/,
  ],
  [
    "section wanted, a login not shown",
    (t) => `${t}  mirrors: { files: ["https://me:hush@mirror"] }\n`,
    /"https:\/\/\*\*\*@mirror": must be a section .*; write for example \{ url: https:\/\/\*\*\*@mirror \}$/,
  ],
  ["duplicate key", (t) => `${t}kind: Cluster\n`, /^f:10:1 the key stands here twice; write it once/],
  ["tab", (t) => t.replace("  hosts:", "\thosts:"), /^f:6:1 a tab is used to indent; write spaces$/],
  ["indentation", (t) => t.replace("  roleGroups:", "   roleGroups:"), /^f:8:/],
  ["open bracket", (t) => t.replace("[m1]", "[m1"), /^f:\d+:\d+ /],
  ["two documents", (t) => `${t}---\n${t}`, /^f:10:1 a second document begins/],
  ["unknown anchor", (t) => t.replace("[m1]", "*x"), /^f:9:13 no &x stands before it/],
  ["alias within itself", (t) => t.replace("[m1]", "&a [ *a ]"), /^f:9:18 the alias stands within its own anchor/],
  ["tag", (t) => t.replace("[m1]", "!foo m1"), /^f:9:13 a tag/],
  ["a list as a file", () => "- a\n", /^f:1:1 \["a"\]: must be a section/],
  ["empty file", () => "", /^f:1:1 the file is empty/],
  ["only comments", () => "# nothing\n", /^f:1:1 the file is empty/],
  ["not UTF-8", (t) => t.replace("m1", "m\ufffd"), /^f:7:16 a sign that is not UTF-8/],
  [
    "full-width colon without space",
    (t) => t.replace("name: prod", "name：prod"),
    /^f:4:7 "name：": a full-width colon/,
  ],
  [
    "full-width comma",
    (t) => t.replace("m1, address", "m1，address"),
    /^f:7:17 "，": a full-width comma stands here; write ,/,
  ],
  ["typographic quotes", (t) => t.replace("name: prod", "name: “prod”"), /^f:4:9 "“": a typographic quotation mark/],
  [
    "foreign space",
    (t) => t.replace("name: prod", "name:\u00a0prod"),
    /^f:4:8 "\u00a0": a space that YAML does not know/,
  ],
];

for (const [name, change, wanted] of FAULTS)
  test(`told with line and column: ${name}`, () => {
    const text = change(small);
    assert.notEqual(text, small);
    const problems = said(text);
    assert.match(problems[0] ?? "nothing", wanted, problems.join("\n"));
    assert.throws(() => parseCluster(text, "f"), ConfigError);
  });
