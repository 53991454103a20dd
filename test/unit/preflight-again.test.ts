import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { RemoteError } from "../../provider/errors";
import { forKind } from "../../provider/dynamic";
import type { Inputs, World } from "../../provider/lifecycle";
import type { Remote } from "../../provider/ssh/remote";
import { Earlier } from "../../resources/preflight/earlier";
import { preflightProvider } from "../../resources/preflight/provider";
import type { HostResult } from "../../resources/preflight/together";

const asked = {
  ...{ version: "v1.35.4", cluster: false, kubeadm: false, runtime: "containerd", existingRuntime: "refuse" },
  ...{ cgroupV1: false, nftables: false, modules: [], ports: [], disk: {}, moreDns: true },
  ...{ selinux: "permissive", firewall: "open" },
};

/** What hosts show besides what is the same of all; a host that is not here cannot be reached. */
let shown: Record<string, { uuid: string; cpus?: number }> = {};
let looks: string[] = [];
/** As the engine keeps it: outputs by resource. */
let state: Record<string, Inputs> = {};
beforeEach(() => {
  shown = { a: { uuid: "1" }, b: { uuid: "1" }, c: { uuid: "3" } };
  looks = [];
  state = {};
});

const remoteOf = (name: string): Remote => ({
  name,
  run: () => {
    looks.push(name);
    const { uuid, cpus = 4 } = shown[name] ?? { uuid: "" };
    const stdout = `@time=${Date.now() / 1000}
ID=debian
VERSION_ID="12"
@hostname=${name}
@kernel=6.1.0
@arch=x86_64
@cpus=${cpus}
@memoryKiB=8388608
@uuid=${uuid}
@zone=/usr/share/zoneinfo/Etc/UTC
@end=.
`;
    return Promise.resolve({ code: 0, stdout, stderr: "", ms: 1 });
  },
  upload: () => Promise.reject(new Error("nothing is uploaded")),
});
const world: World = {
  connect: ({ name }) =>
    shown[name] === undefined
      ? Promise.reject(new RemoteError("no way to it", { host: name, reason: "unreachable", advice: "look" }))
      : Promise.resolve(remoteOf(name)),
  tell: () => undefined,
  forgotten: [],
  ending: false,
  renewed: new Set<string>(),
  controller: "me",
};

/** One run of the program: the hosts, then all together, as the engine takes them. Each run is a process of its own. */
async function up(hosts: readonly string[]): Promise<{ looked: string; refused: string }> {
  looks = [];
  const earlier = new Earlier();
  const results: HostResult[] = [];
  const make = async (kind: string, name: string, host: string, args: Inputs) => {
    const provider = preflightProvider(kind, forKind(kind), world, earlier);
    const inputs = {
      ...args,
      host: { name: host, address: "192.0.2.1" },
      resource: { name, urn: `urn:pulumi:s::p::${kind}::${name}` },
      __provider: "exports.handler=…",
    };
    const { inputs: news, failures } = await provider.check({}, inputs);
    assert.deepEqual(failures, []);
    const olds = state[name];
    if (olds === undefined) state[name] = (await provider.create(news)).outs;
    else {
      const changed = JSON.stringify(olds["asked"]) !== JSON.stringify(args);
      if ((await provider.diff("id", olds, news)).changes === true || changed)
        state[name] = (await provider.update("id", olds, news)).outs;
    }
    // The engine compares with the inputs of before.
    state[name] = { ...state[name], asked: args };
  };
  for (const host of hosts) {
    await make("Preflight", `c-${host}-preflight`, host, asked);
    results.push(state[`c-${host}-preflight`]?.["result"] as HostResult);
  }
  const refused = await make("ClusterPreflight", "c-preflight", "a", { results, reach: [] }).then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return { looked: looks.join(""), refused };
}

describe("what only shows beside the others", () => {
  test("once it is mended, the next up passes, and the one after it looks at nothing", async () => {
    const first = await up(["a", "b"]);
    assert.match(first.refused, /product-uuid +FAIL/);
    assert.match((await up(["a", "b"])).refused, /product-uuid +FAIL/);
    shown["b"] = { uuid: "2" };
    assert.deepEqual(await up(["a", "b"]), { looked: "ab", refused: "" });
    assert.deepEqual(await up(["a", "b"]), { looked: "", refused: "" });
  });

  test("a cluster that never passed is looked at as it is now, by itself too", async () => {
    await up(["a", "b"]);
    shown = { a: { uuid: "1", cpus: 0 }, b: { uuid: "2" } };
    assert.match((await up(["a", "b"])).refused, /^2 hosts: 1 failure.*\na +cpu +FAIL/s);
  });

  test("a host more that is like another: that one is looked at again, and judged beside the others only", async () => {
    shown["b"] = { uuid: "2" };
    assert.equal((await up(["a", "b"])).refused, "");
    shown = { ...shown, a: { uuid: "1", cpus: 0 }, c: { uuid: "2" } };
    const refused = await up(["a", "b", "c"]);
    assert.match(refused.refused, /product-uuid +FAIL +2 is that of b too/);
    assert.doesNotMatch(refused.refused, /cpu/);
    shown["b"] = { uuid: "4" };
    assert.equal((await up(["a", "b", "c"])).refused, "");
    shown["d"] = { uuid: "5" };
    assert.deepEqual(await up(["a", "b", "c", "d"]), { looked: "d", refused: "" });
  });

  test("a host more is no reason to look at the others", async () => {
    shown["b"] = { uuid: "2" };
    await up(["a", "b"]);
    assert.deepEqual(await up(["a", "b", "c"]), { looked: "c", refused: "" });
  });

  test("a host that cannot be reached when it is looked at again is told", async () => {
    await up(["a", "b"]);
    Reflect.deleteProperty(shown, "b");
    const { refused } = await up(["a", "b"]);
    assert.match(refused, /b +connect +FAIL/);
    // Without a way onto it there is nothing to ignore.
    assert.match(refused, /\nMend what failed and run again$/);
  });
});
