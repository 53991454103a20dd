import assert from "node:assert/strict";
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { owner } from "../../toolchain/owner.js";
import { run } from "../../toolchain/process.js";

const scripts = join(__dirname, "..", "..", "..", "scripts");
let folder = "";

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "kubexm-setup-")));
});

after(() => rm(folder, { recursive: true, force: true }));

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** Stands for npm: notes that it was called, takes its time, puts a compiler in place and calls `prepare` as npm does. */
const NPM = `#!/bin/sh
echo npm >> calls
sleep 0.1
[ -e npm-fails ] && { echo "npm cannot"; exit 1; }
rm -rf node_modules
mkdir -p node_modules/.bin node_modules/typescript
cat > node_modules/.bin/tsc <<'END'
#!/bin/sh
echo tsc >> calls
sleep 0.1
[ -e tsc-fails ] && { echo "index.ts(1,1): error"; exit 2; }
mkdir -p dist/cli dist/test
for file in index cli/main; do [ -e $file.ts ] && cp $file.ts dist/$file.js; done
exit 0
END
chmod +x node_modules/.bin/tsc
node scripts/prepare.mjs || exit 1
echo {} > node_modules/.package-lock.json
`;

interface Clone {
  dir: string;
  run: (...args: readonly string[]) => Promise<{ code: number; stdout: string; stderr: string }>;
  calls: () => Promise<string[]>;
}

/** A small clone with our scripts, that has never been used. */
async function clone(name: string): Promise<Clone> {
  const dir = join(folder, name);
  await cp(scripts, join(dir, "scripts"), { recursive: true });
  for (const file of ["package.json", "package-lock.json", "tsconfig.json"]) await write(join(dir, file), "{}");
  await write(join(dir, "index.ts"), "exports.index = 1;");
  const main = `console.log(require.main === module, process.argv.slice(2)); process.exitCode = 7;`;
  await write(join(dir, "cli", "main.ts"), main);
  await write(join(dir, "bin", "npm"), NPM);
  await chmod(join(dir, "bin", "npm"), 0o755);
  const env = { PATH: `${join(dir, "bin")}:${process.env["PATH"] ?? ""}`, KUBEXM_PREPARING: undefined };
  return {
    dir,
    run: (...args) =>
      run(process.execPath, [join(dir, "scripts", "run.mjs"), ...args], { env, cwd: dir, okCodes: [0, 1, 7] }),
    calls: async () => {
      const text = await readFile(join(dir, "calls"), "utf8").catch(() => "");
      await rm(join(dir, "calls"), { force: true });
      return text.split("\n").filter((line) => line !== "");
    },
  };
}

/** Sources get a time after that of any build. */
async function touch(path: string): Promise<void> {
  const later = new Date(Date.now() + 5000);
  await utimes(path, later, later);
}

test("the first command prepares everything, the second one finds all ready", async () => {
  const { dir, run, calls } = await clone("first");
  const first = await run("kubexm", "up", "--yes");
  assert.deepEqual(await calls(), ["npm", "tsc"]);
  assert.deepEqual([first.code, first.stdout], [7, "true [ 'up', '--yes' ]\n"]);
  assert.equal(await readlink(join(dir, "node_modules", "kubexm")), "..");
  const second = await run("kubexm");
  assert.deepEqual(await calls(), []);
  assert.deepEqual([second.code, second.stdout, second.stderr], [7, "true []\n", ""]);
  assert.deepEqual(await readdir(join(dir, ".kubexm")), []);
});

test("of two that start at once one prepares", async () => {
  const { run, calls } = await clone("twice");
  const both = await Promise.all([run("build"), run("build")]);
  assert.deepEqual(
    both.map(({ code }) => code),
    [0, 0],
  );
  assert.deepEqual(await calls(), ["npm", "tsc"]);
});

test("what has changed decides what is done again", async () => {
  const { dir, run, calls } = await clone("changes");
  await run("build");
  await calls();
  const cases: { what: string; change: () => Promise<void>; want: string[] }[] = [
    { what: "nothing", change: () => Promise.resolve(), want: [] },
    { what: "a source", change: () => touch(join(dir, "cli", "main.ts")), want: ["tsc"] },
    { what: "the lock file", change: () => touch(join(dir, "package-lock.json")), want: ["npm"] },
    { what: "no packages", change: () => rm(join(dir, "node_modules"), { recursive: true }), want: ["npm"] },
    { what: "no dist", change: () => rm(join(dir, "dist"), { recursive: true }), want: ["tsc"] },
  ];
  for (const { what, change, want } of cases) {
    await change();
    await run("build");
    assert.deepEqual([...new Set(await calls())], want, what);
    // Times lie ahead of the clock here: what was touched is put back, as the clock would have passed it.
    for (const file of ["cli/main.ts", "package-lock.json"]) await utimes(join(dir, file), new Date(), new Date(1000));
  }
});

test("what was compiled from a source that is gone goes too", async () => {
  const { dir, run } = await clone("gone");
  await run("build");
  await rm(join(dir, "cli", "main.ts"));
  await run("build");
  assert.deepEqual((await readdir(join(dir, "dist", "cli"))).sort(), []);
  assert.deepEqual((await readdir(join(dir, "dist"))).sort(), [".built", "cli", "index.js", "test"]);
});

for (const [tool, words] of [
  ["npm", /^installing packages \(npm ci\) failed \(1\):\nnpm cannot$/m],
  ["tsc", /error/],
] as const)
  test(`a failing ${tool} ends the command with its words, and the next run tries again`, async () => {
    const { dir, run } = await clone(`failing-${tool}`);
    await write(join(dir, `${tool}-fails`), "");
    const { code, stderr, stdout } = await run("kubexm");
    assert.equal(code, 1);
    assert.match(stderr, words);
    assert.equal(stdout, "");
    await rm(join(dir, `${tool}-fails`));
    assert.equal((await run("kubexm")).code, 7);
  });

test("a run that was killed while it prepared does not hold the next one up", async () => {
  const { dir, run } = await clone("killed");
  const [pid, , boot] = owner().split("-");
  await write(join(dir, ".kubexm", `prepare-${pid}-1-${boot}-00`), "");
  assert.equal((await run("build")).code, 0);
  assert.deepEqual(await readdir(join(dir, ".kubexm")), []);
});

test("an unknown verb is told with those there are", async () => {
  const { run } = await clone("unknown");
  const { code, stderr } = await run("toString");
  assert.equal(code, 1);
  assert.match(stderr, /^usage: node scripts\/run\.mjs demo\|kubexm\|test\|/);
});

test("a Node.js that is too old is told in one line", async () => {
  const setup = (await import(pathToFileURL(join(scripts, "setup.mjs")).href)) as {
    nodeProblem: (version: string) => string | undefined;
  };
  const cases = { "18.20.4": true, "20.18.3": true, "20.19.0": false, "22.1.0": false, "9.0.0": true };
  for (const [version, old] of Object.entries(cases)) {
    const problem = setup.nodeProblem(version);
    if (old)
      assert.match(problem ?? "", new RegExp(`^kubexm needs Node\\.js 20\\.19 or newer, this is ${version}: .+$`));
    else assert.equal(problem, undefined);
  }
});
