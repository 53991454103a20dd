import * as pulumi from "@pulumi/pulumi";
import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { clusterJob } from "../../cli/job.js";
import { Cluster } from "../../resources/cluster";

// Compiled tests run from dist/test/unit; the fixture stays where it is written.
const seed = join(__dirname, "../../../test/unit/fixtures/cluster-corrected.yaml");

/** Kinds of what a program asks Pulumi for, in a preview or in a run that makes it. */
async function asked(preview: boolean): Promise<string[]> {
  const kinds: string[] = [];
  const mocks: pulumi.runtime.Mocks = {
    newResource: ({ type, name, inputs }) => {
      if (type.startsWith("pulumi-nodejs:")) kinds.push(type.slice(type.lastIndexOf(":") + 1));
      return { id: name, state: inputs as Record<string, unknown> };
    },
    call: () => ({}),
  };
  await pulumi.runtime.setMocks(mocks, "kubexm", "mycluster", preview);
  return kinds;
}
afterEach(() => pulumi.runtime.disconnect());
const settled = () => pulumi.runtime.disconnect();
const times = (kinds: readonly string[], kind: string) => kinds.filter((one) => one === kind).length;

test("kubexm preview of the seeds' example plans what there is, and tells each thing that is not built, with its place", async () => {
  const told: string[] = [];
  const { program } = await clusterJob(seed, { tell: (line) => told.push(line) });
  const kinds = await asked(true);
  await program();
  await settled();
  for (const kind of ["Preflight", "System", "Packages", "Chrony"]) assert.equal(times(kinds, kind), 12, kind);
  assert.equal(times(kinds, "ClusterPreflight"), 1);
  for (const kind of ["Containerd", "KubernetesNode", "Flannel", "Kubeconfig"])
    assert.equal(times(kinds, kind), 0, kind);
  const left = told.filter((line) => line.includes("preview leaves it out"));
  assert.ok(left.length > 5, left.join("\n"));
  for (const line of left) assert.match(line, /cluster-corrected\.yaml:\d+:\d+ spec\.\S+: .*warning: up refuses it/);
  assert.ok(left.some((line) => line.includes('spec.kubernetes.type: "kubexm"')));
});

test("kubexm up refuses it before Pulumi is started, each thing with its place", async () => {
  const { message }: Error = await clusterJob(seed, { makes: true }).then(
    () => assert.fail("it went on"),
    (error: unknown) => error as Error,
  );
  assert.match(message, /^cluster\.yaml asks for what this version cannot make yet; nothing was changed:\n/);
  assert.match(message, /\n {2}\S+cluster-corrected\.yaml:\d+:\d+ spec\.kubernetes\.type: "kubexm": up refuses it/);
});

const wish = (more: object) => ({
  hosts: [{ name: "m1", address: "192.0.2.1" }],
  roleGroups: { master: ["m1"] },
  kubernetes: { version: "v1.35.4" },
  ...more,
});

test("a program's pulumi up refuses before it asks for anything", async () => {
  const kinds = await asked(false);
  assert.throws(() => new Cluster("c", wish({ addons: ["metallb"] })), /addons: this version of kubexm makes none/);
  await settled();
  assert.deepEqual(kinds, []);
});

for (const [more, nodes] of [
  [{}, 1],
  [{ addons: ["metallb"] }, 1],
  [{ network: { plugin: "calico" } }, 0],
  [{ kubernetes: { version: "v1.35.4", containerRuntime: { type: "cri-o" } } }, 0],
] as const)
  test(`a program's pulumi preview with ${JSON.stringify(more)} plans ${nodes} nodes, and its hosts`, async () => {
    const kinds = await asked(true);
    new Cluster("c", wish(more));
    await settled();
    assert.equal(times(kinds, "KubernetesNode"), nodes, kinds.join(" "));
    assert.equal(times(kinds, "System"), 1);
  });
