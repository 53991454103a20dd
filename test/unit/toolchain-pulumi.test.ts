import assert from "node:assert/strict";
import { chmod, lstat, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PULUMI, addPlugin, checksumOf, pulumiOnPath, sdkFolder, withoutLogs } from "../../toolchain/pulumi.js";
import { atLeast } from "../../toolchain/version.js";

const HOSTS = ["pulumi-language-nodejs", "pulumi-resource-pulumi-nodejs"];
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubexm-pulumi-"));
});

after(() => rm(folder, { recursive: true, force: true }));

async function program(dir: string, name: string, script: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(dir, name), 0o755);
}

/** A folder with a `pulumi` that says `version`, and with these programs beside it. */
async function installed(name: string, script: string, beside: readonly string[] = HOSTS): Promise<string> {
  const dir = join(folder, name);
  await program(dir, "pulumi", script);
  for (const other of beside) await program(dir, other, "true");
  return dir;
}

for (const [what, script, beside, want] of [
  ["new enough", "echo v3.181.0", HOSTS, undefined],
  ["a later one, with a word behind", "echo v3.999.1-dev.7", HOSTS, undefined],
  ["too old", "echo v3.180.9", HOSTS, /is 3\.180\.9, needed is 3\.181\.0 or newer, below 4$/],
  ["too new", "echo v4.0.0", HOSTS, /is 4\.0\.0, needed/],
  ["without a version", "echo hello", HOSTS, /tells no version$/],
  ["broken", "echo oh >&2; exit 7", HOSTS, /exit code 7\noh$/],
  ["without the language host", "echo v3.200.0", HOSTS.slice(1), /has no pulumi-language-nodejs beside it$/],
  [
    "without both hosts",
    "echo v3.200.0",
    [],
    /has no pulumi-language-nodejs and no pulumi-resource-pulumi-nodejs beside/,
  ],
] as const)
  test(`pulumi on PATH, ${what}: ${want === undefined ? "taken" : "not taken, and why"}`, async () => {
    const dir = await installed(what, script, beside);
    const found = await pulumiOnPath(`/no/such:${dir}:/usr/bin`);
    if (want === undefined)
      assert.deepEqual(found, { bin: dir, version: /[\d.]+/.exec(script)?.[0].replace(/\.$/, ""), origin: "path" });
    else assert.match(typeof found === "string" ? found : JSON.stringify(found), want);
  });

test("a link on PATH leads to the folder that holds the hosts", async () => {
  const dir = await installed("real", "echo v3.200.1");
  await mkdir(join(folder, "links"));
  await symlink(join(dir, "pulumi"), join(folder, "links", "pulumi"));
  assert.deepEqual(await pulumiOnPath(join(folder, "links")), { bin: dir, version: "3.200.1", origin: "path" });
});

test("no pulumi on PATH", async () => assert.equal(await pulumiOnPath(`${folder}::/no/such`), "none there"));

test("versions are compared by number", () => {
  const cases: [have: string, least: string, want: boolean][] = [
    ["go1.26.8", "1.25.11", true],
    ["go1.25.11", "1.25.11", true],
    ["go1.25.9", "1.25.11", false],
    ["go1.26rc1", "1.25.11", true],
    ["1.9", "1.10", false],
    ["v2.0.0", "1.99.99", true],
    ["devel", "1.0", false],
  ];
  for (const [have, least, want] of cases) assert.equal(atLeast(have, least), want, `${have} >= ${least}`);
});

test("a checksum is found by the whole name", () => {
  const [one, two] = ["a".repeat(64), "b".repeat(64)];
  const list = `${one}  pulumi.tar.gz.sig\n${two} *pulumi.tar.gz\n`;
  assert.equal(checksumOf(list, "pulumi.tar.gz"), two);
  assert.throws(() => checksumOf(list, "pulumi"), /does not name pulumi$/);
  assert.throws(() => checksumOf("<html>  pulumi", "pulumi"), /does not name pulumi$/);
});

test("the provider's start script is the installed SDK's, also in a cache that an earlier one filled", async () => {
  const [cache, sdk] = [join(folder, "cache"), join(folder, "sdk")];
  await program(sdk, "pulumi-resource-pulumi-nodejs", "echo new");
  await program(cache, "pulumi-resource-pulumi-nodejs", "echo old");
  const plugin = join(cache, "pulumi-resource-pulumi-nodejs");
  await addPlugin(cache, sdk);
  assert.equal(await readFile(plugin, "utf8"), "#!/bin/sh\necho new\n");
  const { mode, ino } = await stat(plugin);
  assert.equal(mode & 0o111, 0o111);
  await addPlugin(cache, sdk);
  assert.equal((await stat(plugin)).ino, ino);
  assert.deepEqual(await readdir(cache), ["pulumi-resource-pulumi-nodejs"]);
});

test("another SDK than the one that is tried is told with what to do", async () => {
  const manifest = join(folder, "package.json");
  await writeFile(manifest, JSON.stringify({ version: "3.0.0" }));
  await assert.rejects(sdkFolder(manifest), {
    name: "UserError",
    message: `@pulumi/pulumi 3.0.0 is installed, ${PULUMI.sdk} is needed: run npm ci`,
  });
  await writeFile(manifest, JSON.stringify({ version: PULUMI.sdk }));
  assert.equal(await sdkFolder(manifest), folder);
});

test("package.json asks for exactly the SDK that the toolchain names", async () => {
  const root = join(__dirname, "..", "..", "..");
  const { dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  assert.equal(dependencies["@pulumi/pulumi"], PULUMI.sdk);
});

for (const [what, before] of [
  ["new", () => Promise.resolve()],
  ["with logs of earlier runs", (home: string) => program(join(home, "logs"), "one.log", "true")],
  ["without logs already", (home: string) => withoutLogs(home)],
] as const)
  test(`Pulumi logs nothing into a home of ours: ${what}`, async () => {
    const home = join(folder, `home ${what}`);
    await before(home);
    assert.equal(await withoutLogs(home), home);
    assert.ok((await lstat(join(home, "logs"))).isFile());
  });
