import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSpec, type ClusterInput } from "../../resources/config";
import { registriesOf } from "../../resources/modules/registries";

const registries = (more: Partial<ClusterInput>) =>
  registriesOf(
    parseSpec("test", {
      hosts: [{ name: "m1", address: "192.0.2.1" }],
      roleGroups: { master: ["m1"], etcd: ["m1"], worker: ["m1"] },
      kubernetes: { version: "v1.35.4" },
      ...more,
    }),
  );

for (const [what, given, wanted] of [
  ["nothing said: every registry itself", {}, {}],
  [
    "zone cn: a public mirror of each registry there",
    { zone: "cn" },
    {
      "docker.io": { places: [{ url: "https://docker.m.daocloud.io" }] },
      "ghcr.io": { places: [{ url: "https://ghcr.m.daocloud.io" }] },
      "quay.io": { places: [{ url: "https://quay.m.daocloud.io" }] },
      "registry.k8s.io": { places: [{ url: "https://k8s.m.daocloud.io" }] },
    },
  ],
  [
    "a mirror of one's own comes before the zone's",
    { zone: "cn", mirrors: { images: [{ registry: "quay.io", url: "https://mirror.example" }] } },
    { "quay.io": { places: [{ url: "https://mirror.example" }, { url: "https://quay.m.daocloud.io" }] } },
  ],
] as const satisfies readonly (readonly [string, Partial<ClusterInput>, object])[])
  test(what, () => {
    const found = registries(given);
    assert.deepEqual({ ...found, ...wanted }, found);
    assert.equal(Object.keys(found).length, "zone" in given ? 4 : 0);
  });
