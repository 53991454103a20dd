import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const folder = mkdtempSync(join(tmpdir(), "kubexm-validate-"));
after(() => rmSync(folder, { recursive: true }));

const sound = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: { name: prod }
spec:
  hosts:
    - { name: m1, address: 192.0.2.1, password: "\${config:password}" }
    - { name: w1, address: 192.0.2.2, password: "\${env:KUBEXM_TEST_PASSWORD}" }
  roleGroups: { master: [m1], worker: [w1] }
`;
const files: Readonly<Record<string, string>> = {
  "sound.yaml": sound,
  "warned.yaml": sound.replace(", worker: [w1]", ""),
  "faulty.yaml": sound.replace("[w1]", "[w2]"),
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

function validate(...argv: string[]) {
  const entry = join(__dirname, "..", "..", "cli", "main.js");
  const env = { ...process.env, KUBEXM_TEST_PASSWORD: "x" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, "validate", ...argv], { cwd: folder, env });
  return { code: status, out: stdout.toString(), err: stderr.toString() };
}

const CASES: [string[], number, RegExp, RegExp][] = [
  [["-f", "sound.yaml"], 0, /^sound\.yaml: 0 problems, 0 warnings\n$/, /^$/],
  [
    ["-f", "warned.yaml"],
    0,
    /^warned\.yaml:7:15 spec\.hosts\[1\]\.name: "w1": warning: .*\nwarned\.yaml: 0 problems, 1 warning\n$/,
    /^$/,
  ],
  [["--file", "faulty.yaml"], 1, /faulty\.yaml:8:40 spec\.roleGroups\.worker\[0\]: "w2": w2 is not among hosts/, /^$/],
  [["-f", "none.yaml"], 2, /^$/, /^none\.yaml: there is no such file; name the cluster file with -f\n$/],
  [[], 2, /^$/, /^cluster\.yaml: there is no such file/],
  [["--colour"], 2, /^$/, /^kubexm validate: Unknown option '--colour'.*flags are --file --json --help\n$/],
  [["--help"], 0, /exit code: 0 nothing is wrong/, /^$/],
];

for (const [argv, code, out, err] of CASES)
  test(`kubexm validate ${argv.join(" ")}`, () => {
    const ran = validate(...argv);
    assert.equal(ran.code, code, ran.err);
    assert.match(ran.out, out);
    assert.match(ran.err, err);
  });

test("kubexm validate --json", () => {
  const told = (...argv: string[]) => JSON.parse(validate("--json", "-f", ...argv).out) as unknown;
  assert.deepEqual(told("sound.yaml"), { file: "sound.yaml", ok: true, problems: [] });
  const { problems } = told("faulty.yaml") as { problems: unknown[] };
  assert.deepEqual(problems[1], {
    path: ["spec", "roleGroups", "worker", 0],
    message: "w2 is not among hosts; write w1, or add the host",
    rule: "unknown-host",
    severity: "error",
    value: '"w2"',
    line: 8,
    col: 40,
  });
  assert.deepEqual(told("none.yaml"), {
    file: "none.yaml",
    ok: false,
    unreadable: "none.yaml: there is no such file; name the cluster file with -f",
  });
});
