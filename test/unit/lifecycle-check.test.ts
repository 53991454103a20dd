import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import type { Definition } from "../../provider/definition";
import { check, diff, plan, refuseFixed, schemaVersion, standsOnNew, type Inputs } from "../../provider/lifecycle";
import { Secret, sh } from "../../provider/shell";
import * as steps from "../../provider/steps";
import { fakeWorld, never } from "../harness/thing";

const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const SUM = "a".repeat(64);

const args = z.object({
  path: z.string().default("/etc/kx/conf"),
  content: z.string().default("one\n"),
  mode: z.string().default("0644"),
  owner: z.string().default("root:root"),
  sum: z.string().default(SUM),
  packages: z.array(z.string()).default([]),
  count: z.number().int().min(1).max(9).default(1),
  servers: z.array(z.object({ address: z.string(), weight: z.number() }).strict()).default([]),
  template: z.record(z.string(), z.unknown()).optional(),
  secret: z.string().optional(),
  link: z.string().optional(),
});

/** Steps of many kinds, to be judged without any host. */
const mixed: Definition = {
  kind: "Mixed",
  about: "For tests",
  args,
  steps: (given) => {
    const a = given as z.output<typeof args>;
    return [
      steps.file(a.path, a.content, { mode: a.mode, owner: a.owner }),
      steps.packages(a.packages),
      ...(a.sum === SUM ? [] : [steps.binary("/usr/local/bin/kx", { path: "/nowhere", sha256: a.sum })]),
      ...(a.template ? [steps.template("/etc/chrony.conf", "chrony/chrony.conf", a.template)] : []),
      ...(a.secret === undefined ? [] : [steps.file("/etc/kx/key", new Secret(a.secret), { mode: "0600" })]),
      ...(a.link === undefined ? [] : [steps.symlink(a.link, "/etc")]),
      steps.command("count", { run: sh`:`, doneWhen: sh`test ${a.count} = 1` }),
    ];
  },
};

const base = {
  host: { name: "h1", address: "192.0.2.1" },
  resource: { name: "one", urn: "urn:one" },
  __provider: "loader",
};
const failures = (more: object) =>
  check(mixed, undefined, { ...base, ...more }).failures.map(({ property, reason }) => `${property}: ${reason}`);

describe("check", () => {
  test("arguments that were taken before are the same for another host, and others are not", () => {
    const on = (name: string, more: object) =>
      check(mixed, undefined, { ...base, host: { ...base.host, name }, ...more }).inputs;
    const first = on("h1", { servers: [{ address: "a", weight: 1 }] });
    const second = on("h2", { servers: [{ address: "a", weight: 1 }] });
    const third = on("h3", { servers: [{ address: "b", weight: 1 }] });
    const [one, two, three] = [first, second, third].map(({ servers, host }) => JSON.stringify([servers, host]));
    assert.equal(two, one?.replaceAll("h1", "h2"));
    assert.equal(three, one?.replaceAll("h1", "h3").replaceAll('"a"', '"b"'));
  });

  test("fills in defaults, keeps the rest, and says the same when asked again", () => {
    const { inputs, failures: none } = check(mixed, undefined, { ...base, count: 2 });
    assert.deepEqual(none, []);
    const { count, mode, retain, forget, __provider } = inputs;
    assert.deepEqual([count, mode, retain, forget, __provider], [2, "0644", false, false, "loader"]);
    assert.deepEqual(check(mixed, undefined, inputs), { inputs, failures: [] });
  });
  test("tells all problems at once, each with its path", () => {
    const told = failures({
      count: 99,
      mode: 7,
      servers: [{ address: "a", weight: 1 }, { address: 5 }],
      nobody: true,
      host: { name: "h1", port: 70000, adress: "x" },
      retain: "yes",
    });
    const paths = told.map((line) => line.slice(0, line.indexOf(":"))).sort();
    assert.deepEqual(paths, [
      "",
      "count",
      "host",
      "host.address",
      "host.port",
      "mode",
      "retain",
      "servers.1.address",
      "servers.1.weight",
    ]);
    assert.match(told.join("\n"), /nobody/);
    assert.match(told.join("\n"), /adress/);
  });

  const bad: readonly [string, object, RegExp][] = [
    ["a relative path", { path: "etc/x" }, /^path: "etc\/x": expected an absolute path/],
    ["a path with ..", { path: "/etc/../x" }, /^path: .*without \. and \.\./],
    ["a path that ends in ..", { path: "/etc/.." }, /^path: /],
    ["a path with .", { path: "/etc/./x" }, /^path: /],
    ["a path with an empty part", { path: "/etc//x" }, /^path: /],
    ["the root", { path: "/" }, /^path: /],
    ["an empty path", { path: "" }, /: .*absolute path/],
    ["a path with a newline", { path: "/etc/a\nb" }, /^path: /],
    ["a path that ends with a slash", { path: "/etc/x/" }, /^path: /],
    ["a path of a link", { link: "../x" }, /^link: /],
    ["a mode of letters", { mode: "rw-r--r--" }, /^mode: .*expected a mode like 0644/],
    ["a mode with a digit that is none", { mode: "0689" }, /^mode: /],
    ["a mode too long", { mode: "000644" }, /^mode: /],
    ["an owner without a group", { owner: "root" }, /^owner: .*like root:root/],
    ["an owner with a shell's words", { owner: "root:$(id)" }, /^owner: /],
    ["a checksum too short", { sum: "abc" }, /^sum: .*sha256 of 64/],
    ["a checksum in capitals", { sum: "A".repeat(64) }, /^sum: /],
    ["a checksum of another kind", { sum: `sha512:${SUM}` }, /^sum: /],
    ["a package that is an option", { packages: ["fine", "-y"] }, /^packages\.1: .*plain name/],
    ["a package with a shell's words", { packages: ["a;b"] }, /^packages\.0: /],
    ["a variable a template needs", { template: { servers: ["a"] } }, /chrony\.conf\.hbs.*not defined/],
    ["two steps about one thing", { path: "/etc/kx/key", secret: "s" }, /two steps are about it/],
    ["the same package twice", { packages: ["a", "a"] }, /two steps are about it/],
    ["an unknown argument", { color: "red" }, /color/],
    ["a wrong type", { content: 5 }, /^content: .*string/],
    ["a missing host name", { host: { address: "a" } }, /^host\.name: /],
    ["a pinned host key of no form", { host: { name: "h", address: "a", hostKey: "abc" } }, /^host\.hostKey: .*SHA256/],
  ];
  for (const [name, more, expected] of bad)
    test(`refuses ${name}`, () => {
      const told = failures(more);
      assert.equal(told.length, 1, told.join("\n"));
      assert.match(told[0] ?? "", expected);
    });

  const good: readonly [string, object][] = [
    ["an odd but absolute path", { path: "/etc/a b/$(x)'\"/..c" }],
    ["a mode without a leading zero", { mode: "755" }],
    ["a mode with the sticky bit", { mode: "1777" }],
    ["other owners", { owner: "_chrony:systemd-network" }],
    ["a checksum", { sum: "0123456789abcdef".repeat(4) }],
    ["package names of any kind", { packages: ["libstdc++6", "g++", "python3.11", "linux-image-6.1"] }],
  ];
  for (const [name, more] of good) test(`takes ${name}`, () => assert.deepEqual(failures(more), []));

  const unknown: readonly [string, object, readonly string[]][] = [
    ["a string", { content: UNKNOWN }, []],
    ["a number", { count: UNKNOWN }, []],
    ["a list", { packages: UNKNOWN }, []],
    ["a leaf of a list of objects", { servers: [{ address: UNKNOWN, weight: UNKNOWN }] }, []],
    ["an address", { host: { name: "h1", address: UNKNOWN, port: UNKNOWN } }, []],
    ["the whole host", { host: UNKNOWN }, []],
    ["a path whose form cannot be judged yet", { path: UNKNOWN }, []],
    ["one that hides no other problem", { content: UNKNOWN, count: 99 }, ["count"]],
  ];
  for (const [name, more, expected] of unknown)
    test(`leaves for later what is not known yet: ${name}`, () => {
      const result = check(mixed, undefined, { ...base, ...more });
      assert.deepEqual(
        result.failures.map(({ property }) => property),
        expected,
      );
      const defaults = expected.length > 0 ? {} : check(mixed, undefined, base).inputs;
      assert.deepEqual(result.inputs, { ...defaults, ...base, ...more }, "handed on as it came, with what is left out");
    });
});

describe("plan and diff", () => {
  const checked = (more: object): Inputs => check(mixed, undefined, { ...base, ...more }).inputs;
  const stored = (more: object, drift: readonly object[] = []): Inputs => ({
    ...checked(more),
    schema: schemaVersion,
    drift,
  });
  const rows: readonly { name: string; olds?: Inputs; news: Inputs; says: readonly string[] }[] = [
    {
      name: "create: every step, and contents",
      news: checked({ packages: ["chrony"], content: "one\ntwo\n" }),
      says: [
        "+ path /etc/kx/conf mode=644 owner=root group=root",
        "    +one",
        "    +two",
        "+ package chrony installed=yes",
        "+ command count done=yes",
      ],
    },
    { name: "nothing new", olds: stored({}), news: checked({}), says: [] },
    {
      name: "a line of a file",
      olds: stored({ content: "a\nb\nc\nd\ne\n" }),
      news: checked({ content: "a\nb\nC\nd\ne\n" }),
      says: [
        "~ path /etc/kx/conf mode=644 owner=root group=root",
        "     a",
        "     b",
        "    -c",
        "    +C",
        "     d",
        "     e",
      ],
    },
    {
      name: "a mode only",
      olds: stored({}),
      news: checked({ mode: "0600" }),
      says: ["~ path /etc/kx/conf mode=600 owner=root group=root"],
    },
    {
      name: "another path: the old is taken back",
      olds: stored({ content: "" }),
      news: checked({ content: "", path: "/etc/kx/other" }),
      says: ["- path /etc/kx/conf", "+ path /etc/kx/other mode=644 owner=root group=root"],
    },
    {
      name: "a secret: never its content",
      olds: stored({ secret: "old-canary" }),
      news: checked({ secret: "new-canary" }),
      says: ["~ path /etc/kx/key mode=600 owner=root group=root", "    (secret content)"],
    },
    {
      name: "drift",
      olds: stored({}, [{ step: "command count", want: "done=yes", found: "done=no" }]),
      news: checked({}),
      says: ["! command count: found done=no, want done=yes"],
    },
    { name: "not known yet", news: { ...base, content: UNKNOWN }, says: [] },
    {
      name: "not known yet in part, of what may be absent: the rest is told, and nothing as taken back",
      olds: stored({ link: "/etc/kx/link" }),
      news: { ...base, mode: "0600", link: UNKNOWN },
      says: ["~ path /etc/kx/conf mode=600 owner=root group=root", "? what comes of link, which is not known yet"],
    },
    {
      name: "not known yet on which host: the rest is",
      news: { ...base, host: { ...base.host, address: UNKNOWN } },
      says: ["+ path /etc/kx/conf mode=644 owner=root group=root", "    +one", "+ command count done=yes"],
    },
    {
      name: "olds that this version cannot read: all is told as new",
      olds: { ...stored({ content: "" }), content: 5 },
      news: checked({ content: "" }),
      says: ["+ path /etc/kx/conf mode=644 owner=root group=root", "+ command count done=yes"],
    },
  ];
  for (const { name, olds, news, says } of rows) test(name, () => assert.deepEqual(plan(mixed, olds, news), says));
  test("a long difference is cut", () => {
    const content = Array.from({ length: 100 }, (_, i) => `line ${i}\n`).join("");
    const text = plan(mixed, undefined, checked({ content }));
    assert.ok(text.includes("    … 40 more lines"), text.join("\n"));
  });
  test("a secret never stands in a plan", () => {
    const text = plan(mixed, undefined, checked({ secret: "s3cret-canary" })).join("\n");
    assert.ok(text.includes("/etc/kx/key") && !text.includes("canary"), text);
  });
  test("what is fixed may not change once it is made; half made it still may", () => {
    const definition = { ...mixed, fixed: { "table.row": "it is set in stone" } };
    const having = (row: string) => ({ ...stored({}), table: { row } });
    refuseFixed(definition, having("a"), having("a"));
    assert.throws(
      () => refuseFixed(definition, having("a"), having("b")),
      /^UserError: table\.row cannot be changed any more: it is set in stone$/,
    );
    refuseFixed(definition, { ...having("a"), incomplete: true }, having("b"));
    assert.throws(
      () => refuseFixed(definition, { ...having("a"), incomplete: true, made: true }, having("b")),
      /stone/,
    );
    refuseFixed(definition, having("a"), having("04da6b54-80e4-46f7-96ec-b56ff0331ba9"));
  });
  test("of what is fixed for some values, others may change", () => {
    const closing = (...modes: unknown[]) => modes.includes("0000");
    const definition = { ...mixed, fixed: { mode: { where: closing, reason: "closed stays closed" } } };
    refuseFixed(definition, stored({ mode: "0644" }), { ...base, mode: "0600" });
    for (const [was, is] of [
      ["0644", "0000"],
      ["0000", "0644"],
    ])
      assert.throws(
        () => refuseFixed(definition, stored({ mode: was }), { ...base, mode: is }),
        /^UserError: mode cannot be changed any more: closed stays closed$/,
      );
  });
  test("what stands on something that was made anew is made again in the same run, and then no more", () => {
    const { world } = fakeWorld(never);
    const standing = { ...mixed, renewedBy: ({ mode }: Readonly<Record<string, unknown>>) => `node ${String(mode)}` };
    const olds = { ...stored({ mode: "0600" }) };
    assert.equal(standsOnNew(standing, world, olds), false);
    world.renewed.add("node 0600");
    assert.equal(standsOnNew(standing, world, olds), true);
    assert.equal(standsOnNew(standing, world, { ...olds, mode: "0644" }), false);
    assert.equal(standsOnNew(mixed, world, olds), false);
  });
  test("a plan that depends on the host says as what it was taken", () => {
    const definition: Definition = {
      ...mixed,
      steps: (_, { os }) => steps.pkg(os.family === "rhel" ? "chrony" : "chronyd"),
    };
    assert.deepEqual(plan(definition, undefined, checked({})), [
      "as on Debian, until the host has been looked at:",
      "+ package chronyd installed=yes",
    ]);
  });
  test("diff leaves it to the engine, but for drift and what is half made", () => {
    assert.deepEqual(diff(stored({})), {});
    assert.deepEqual(diff({}), {});
    assert.deepEqual(diff(stored({}, [{ step: "s", want: "w", found: "f" }])), { changes: true });
    assert.deepEqual(
      diff({ ...stored({}), incomplete: true }),
      { changes: true },
      "a refresh clears the engine's own mark",
    );
    assert.deepEqual(diff({ incomplete: true }), { changes: true });
  });
});
