import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "smol-toml";
import { parseFacts } from "../../provider/facts";
import { refuseFixed } from "../../provider/lifecycle";
import { Containerd } from "../../resources/containerd";
import { merge } from "../../resources/config/merge";
import { containerdConfig } from "../../resources/runtime/containerd-config";
import { registry, registryFiles } from "../../resources/runtime/registries";

type Table = Record<string, unknown>;
const at = (tree: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((node, key) => (node as Table)[key], tree);

const config = (version: string, more: Table = {}) =>
  parse(containerdConfig({ version, dataDir: "/data/ctd", sandboxImage: "registry.k8s.io/pause:3.10.1", more }));

describe("containerd's configuration", () => {
  const images = "io.containerd.cri.v1.images";
  const runtime = "io.containerd.cri.v1.runtime";
  const rows: readonly [version: string, form: number, plugin: string][] = [
    ["1.7.28", 2, "io.containerd.grpc.v1.cri"],
    ["2.0.6", 3, runtime],
    ["2.2.9", 3, runtime],
    ["v2.3.4", 4, runtime],
    ["3.0.0", 4, runtime],
  ];
  for (const [version, form, plugin] of rows)
    test(`${version} reads version ${form}`, () => {
      const tree = config(version);
      assert.equal(tree["version"], form);
      assert.equal(at(tree, "plugins", plugin, "containerd", "runtimes", "runc", "options", "SystemdCgroup"), true);
      assert.equal(at(tree, "plugins", "io.containerd.internal.v1.opt", "path"), "/data/ctd/opt");
    });
  test("the sandbox image is pinned where the version looks for it", () => {
    assert.equal(
      at(config("1.7.28"), "plugins", "io.containerd.grpc.v1.cri", "sandbox_image"),
      "registry.k8s.io/pause:3.10.1",
    );
    assert.equal(at(config("2.2.9"), "plugins", images, "pinned_images", "sandbox"), "registry.k8s.io/pause:3.10.1");
  });
  test("a list of plugin folders from 2.1 on", () => {
    assert.equal(at(config("2.0.6"), "plugins", runtime, "cni", "bin_dir"), "/opt/cni/bin");
    assert.deepEqual(at(config("2.1.0"), "plugins", runtime, "cni", "bin_dirs"), ["/opt/cni/bin"]);
  });
  test("what a user adds is laid over it, key by key", () => {
    const tree = config("2.2.9", {
      plugins: { [runtime]: { restrict_oom_score_adj: true, cni: { conf_dir: "/cni" } } },
    });
    assert.equal(at(tree, "plugins", runtime, "restrict_oom_score_adj"), true);
    assert.equal(at(tree, "plugins", runtime, "cni", "conf_dir"), "/cni");
    assert.deepEqual(at(tree, "plugins", runtime, "cni", "bin_dirs"), ["/opt/cni/bin"]);
  });
  test("lists are replaced, tables grow together, neither side is changed", () => {
    const base = { a: { b: 1, l: [1, 2] } };
    assert.deepEqual(merge(base, { a: { l: [3], c: 2 } }), { a: { b: 1, l: [3], c: 2 } });
    assert.deepEqual(base, { a: { b: 1, l: [1, 2] } });
  });
});

describe("registries", () => {
  const hosts = (name: string, about: Parameters<typeof registry.parse>[0], logins = {}, clients = {}) => {
    const steps = registryFiles(name, registry.parse(about), { logins, clients });
    const file = steps.find(({ id }) => id.endsWith("hosts.toml"));
    return { tree: parse(file?.shown?.text ?? ""), steps, secret: file?.shown?.secret };
  };
  test("mirrors come before the registry itself, in order", () => {
    const { tree } = hosts("registry.k8s.io", { places: [{ url: "https://a:5443" }, { url: "http://b" }] });
    assert.equal(tree["server"], "https://registry.k8s.io");
    assert.deepEqual(Object.keys(tree["host"] as Table), ["https://a:5443", "http://b"]);
  });
  test("docker.io lies elsewhere", () => {
    assert.equal(hosts("docker.io", { places: [] }).tree["server"], "https://registry-1.docker.io");
  });
  test("a project's path is put below /v2 once", () => {
    for (const url of ["https://hub/proxy", "https://hub/v2/proxy/"]) {
      const { tree } = hosts("docker.io", { places: [{ url }] });
      assert.equal(at(tree, "host", "https://hub/v2/proxy", "override_path"), true, url);
    }
  });
  test("a certificate is a file of its own, and the host names it", () => {
    const { tree, steps } = hosts("r.example", { places: [{ url: "https://m", ca: "PEM\n" }] });
    const path = "/etc/containerd/certs.d/r.example/ca-0.crt";
    assert.equal(at(tree, "host", "https://m", "ca"), path);
    assert.ok(steps.some(({ id }) => id === `path ${path}`));
  });
  test("insecure: plain HTTP, or an unknown certificate", () => {
    assert.ok(at(hosts("r:5000", { own: [{ url: "http://r:5000" }] }).tree, "host", "http://r:5000"));
    const { tree } = hosts("r", { own: [{ url: "https://r", skipVerify: true }] });
    assert.equal(at(tree, "host", "https://r", "skip_verify"), true);
  });
  test("insecure, and nobody has said how: an unknown certificate before plain HTTP", () => {
    const { tree } = hosts("r:5000", { own: [{ url: "https://r:5000", skipVerify: true }, { url: "http://r:5000" }] });
    assert.deepEqual(Object.keys(tree["host"] as Table), ["https://r:5000", "http://r:5000"]);
  });
  test("a certificate is shown to the registry itself, not to its mirrors, and its key is a secret", () => {
    const clients = { "r.example": [{ cert: "CERT", key: "KEY" }] };
    const { tree, steps } = hosts("r.example", { places: [{ url: "https://m" }] }, {}, clients);
    const at0 = (end: string) => `/etc/containerd/certs.d/r.example/client-0.${end}`;
    assert.deepEqual(at(tree, "host", "https://r.example", "client"), [[at0("cert"), at0("key")]]);
    assert.equal(at(tree, "host", "https://m", "client"), undefined);
    const key = steps.find(({ id }) => id === `path ${at0("key")}`);
    assert.equal(key?.shown?.secret, true);
    assert.equal(key.want["mode"], "600");
  });
  test("a login is sent, and the file is a secret", () => {
    const { tree, secret } = hosts("r.example", {}, { "r.example": { username: "u", password: "p" } });
    assert.equal(at(tree, "host", "https://r.example", "header", "authorization"), "Basic dTpw");
    assert.equal(secret, true);
    assert.equal(hosts("r.example", { places: [{ url: "https://m" }] }).secret, false);
  });
});

test("the folder of running containers cannot be changed beneath them", () => {
  const olds = { drift: [], dataDir: "/var/lib/containerd", existing: "refuse" };
  refuseFixed(Containerd.definition, olds, olds);
  assert.throws(
    () => refuseFixed(Containerd.definition, olds, { ...olds, dataDir: "/data/containerd" }),
    /dataDir cannot be changed any more: running containers/,
  );
});

test("a containerd that is adopted may have a version of which no file is known", () => {
  const args = Containerd.definition.args.parse({
    ...{ version: "1.6.20", runc: "0.0.1", crictl: "1.35.0", cniPlugins: "1.9.1" },
    ...{ arch: "amd64", sandboxImage: "registry.k8s.io/pause", existing: "adopt" },
  });
  const ids = Containerd.definition.steps(args, parseFacts("ID=debian")).flatMap((step) => [step].flat());
  assert.ok(!ids.some(({ id }) => /usr\/local\/(sbin|lib)|containerd\.service$/.test(id) && !id.startsWith("unit")));
});

test("a small installation of the RHEL family lacks tar", () => {
  const versions = { version: "2.2.7", runc: "1.3.4", crictl: "1.35.0", cniPlugins: "1.9.1" };
  const args = Containerd.definition.args.parse({ ...versions, arch: "amd64", sandboxImage: "registry.k8s.io/pause" });
  const first = (osRelease: string) =>
    Containerd.definition
      .steps(args, parseFacts(`${osRelease}\n@arch=x86_64`))
      .flat()
      .map(({ id }) => id)
      .find((id) => id.startsWith("package") || id.startsWith("archive"));
  assert.equal(first('ID=rocky\nVERSION_ID="9.5"'), "package tar");
  assert.match(first('ID=debian\nVERSION_ID="12"') ?? "", /^archive/);
});
