import * as pulumi from "@pulumi/pulumi";
import assert from "node:assert/strict";
import { test } from "node:test";
import { allDefinitions } from "../../provider/definition";
import { guarded } from "../../provider/resource";
import "../../resources";
import { thing } from "../harness/thing";

const at = (...urls: string[]) => ({ mirrors: urls.map((url) => ({ url })) });
const open = at("https://mirror.example.com", "https://mirror.example.com/a@b");
const closed = at("https://mirror.example.com", "https://user:password@mirror.example.com");

const withSources = allDefinitions().filter(({ args }) => "sources" in args.shape);

for (const { what, sources, secret } of [
  { what: "a mirror's login", sources: closed, secret: true },
  { what: "a mirror's login that is known later", sources: pulumi.output(Promise.resolve(closed)), secret: true },
  { what: "a mirror that asks for none", sources: open, secret: false },
  { what: "no mirror", sources: {}, secret: false },
])
  for (const definition of withSources)
    test(`${what} is ${secret ? "" : "not "}kept encrypted with the sources of ${definition.kind}`, async () => {
      const { version, ...args } = guarded(definition, { version: "1", sources });
      assert.equal(await pulumi.isSecret(args["sources"] as pulumi.Output<unknown>), secret);
      assert.equal(version, "1");
    });

test("components that need files are among these", () =>
  assert.deepEqual(withSources.map(({ kind }) => kind).sort(), ["Containerd", "KubernetesPrograms"]));

test("an argument that is a secret is one whatever it holds", async () => {
  const { secret, names } = guarded(thing, { secret: "", names: ["a"] });
  assert.ok(await pulumi.isSecret(secret as pulumi.Output<unknown>));
  assert.deepEqual(names, ["a"]);
});
