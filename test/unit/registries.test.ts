import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseSpec, type ClusterInput } from "../../resources/config";
import { clientsOf, registriesOf } from "../../resources/modules/registries";

const spec = (more: Partial<ClusterInput>) =>
  parseSpec("test", {
    hosts: [{ name: "m1", address: "192.0.2.1" }],
    roleGroups: { master: ["m1"], etcd: ["m1"], worker: ["m1"] },
    kubernetes: { version: "v1.35.4" },
    ...more,
  });
const registries = (more: Partial<ClusterInput>) => registriesOf(spec(more));

for (const [what, given, wanted] of [
  ["nothing said: every registry itself", {}, {}],
  [
    "zone cn: a public mirror of each registry there",
    { zone: "cn" },
    {
      "docker.io": { places: [{ url: "https://docker.m.daocloud.io" }], own: [] },
      "ghcr.io": { places: [{ url: "https://ghcr.m.daocloud.io" }], own: [] },
      "quay.io": { places: [{ url: "https://quay.m.daocloud.io" }], own: [] },
      "registry.k8s.io": { places: [{ url: "https://k8s.m.daocloud.io" }], own: [] },
    },
  ],
  [
    "a mirror of one's own comes before the zone's",
    { zone: "cn", mirrors: { images: [{ registry: "quay.io", url: "https://mirror.example" }] } },
    { "quay.io": { places: [{ url: "https://mirror.example" }, { url: "https://quay.m.daocloud.io" }], own: [] } },
  ],
] as const satisfies readonly (readonly [string, Partial<ClusterInput>, object])[])
  test(what, () => {
    const found = registries(given);
    assert.deepEqual({ ...found, ...wanted }, found);
    assert.equal(Object.keys(found).length, "zone" in given ? 4 : 0);
  });

test("an insecure registry is tried by https with whatever certificate, then by plain HTTP", () => {
  const containerRuntime = { containerd: { insecureRegistries: ["r:5000"] } };
  assert.deepEqual(registries({ kubernetes: { version: "v1.35.4", containerRuntime } })["r:5000"]?.own, [
    { url: "https://r:5000", skipVerify: true },
    { url: "http://r:5000" },
  ]);
});

describe("certsPath is a folder as docker has them", () => {
  const given = (files: Readonly<Record<string, string>>, use: (more: Partial<ClusterInput>) => void) => {
    const certsPath = mkdtempSync(join(tmpdir(), "kubexm-certs-"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(certsPath, name), text);
    try {
      use({ registry: { auths: { "r.example": { certsPath } } } });
    } finally {
      rmSync(certsPath, { recursive: true });
    }
  };
  test("all of *.crt are trusted, whatever their names", () =>
    given({ "a.crt": "A", "corp-root.crt": "B\n", README: "no" }, (more) => {
      assert.deepEqual(registries(more)["r.example"]?.own, [{ url: "https://r.example", ca: "A\nB\n" }]);
      assert.deepEqual(clientsOf(spec(more)), {});
    }));
  test("*.cert with its *.key is shown, and does not stand among what is no secret", () =>
    given({ "me.cert": "CERT", "me.key": "KEY" }, (more) => {
      assert.deepEqual(clientsOf(spec(more)), { "r.example": [{ cert: "CERT", key: "KEY" }] });
      assert.deepEqual(registries(more), { "r.example": { places: [], own: [] } });
    }));
  test("half a pair, or nothing at all, is an error that names it", () => {
    given({ "me.cert": "CERT" }, (more) => assert.throws(() => registries(more), /has me\.cert, but no me\.key/));
    given({ "ca.pem": "A" }, (more) => assert.throws(() => registries(more), /r\.example: there is neither a \*\.crt/));
  });
  test("so is a folder that is not there", () =>
    assert.throws(
      () => registries({ registry: { auths: { r: { certsPath: "/nowhere/certs" } } } }),
      /\/nowhere\/certs cannot be read/,
    ));
});
