import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { FETCHED, PACKAGES, removeFormer } from "../../lab/image.js";
import { packages } from "../../resources/modules/host.js";

const dir = mkdtempSync(join(tmpdir(), "kubexm-image-"));
after(() => rmSync(dir, { recursive: true, force: true }));

test("the images that had a tag before are removed, by our label only; one that is in use stays", async () => {
  const calls = join(dir, "calls");
  const says = `[ "$2" != ls ] || { echo sha256:a; echo sha256:b; }\n[ "$3" != sha256:a ] || exit 1`;
  writeFileSync(join(dir, "docker"), `#!/bin/sh\necho "$*" >>${calls}\n${says}\n`);
  chmodSync(join(dir, "docker"), 0o755);
  const env = { PATH: [dir, process.env["PATH"]].join(delimiter) };
  await removeFormer({ own: false, env }, "kubexm-lab:1");
  assert.deepEqual(readFileSync(calls, "utf8").trimEnd().split("\n"), [
    "image ls --quiet --no-trunc --filter dangling=true --filter label=kubexm.lab.image=kubexm-lab:1",
    "image rm sha256:a",
    "image rm sha256:b",
  ]);
});

test("what kubexm installs on a node is in the image, or fetched with it", () => {
  const there: readonly string[] = [...PACKAGES, ...FETCHED];
  assert.deepEqual(
    packages.debs.filter((name) => !there.includes(name)),
    [],
  );
});
