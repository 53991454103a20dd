// Every npm script comes through here, so that each works as the first command after a clone.
import fs from "node:fs";
import Module from "node:module";
import { join } from "node:path";
import { SetupError, ready, root, start, tool } from "./setup.mjs";

/** The compiled entry becomes the main module of this very process: exit code and signals are its own. */
const entry = (path) => (args) => {
  process.argv.splice(1, Infinity, join(root, "dist", path), ...args);
  Module.runMain();
};

const FLOORS = ["cli", "provider", "resources", "artifacts", "lab", "toolchain", "index.ts", "program.ts"];

async function lint() {
  const floors = FLOORS.filter((name) => fs.existsSync(join(root, name)));
  const checks = await Promise.allSettled([
    tool("eslint", "eslint", ["."], { quiet: true }),
    // As in a project of their own: by what the package tells of itself.
    tool("examples", "tsc", ["-p", "examples"], { quiet: true }),
    tool("depcruise", "depcruise", ["--config", ".dependency-cruiser.cjs", ...floors], { quiet: true }),
    tool("prettier", "prettier", ["--check", "."], { quiet: true }),
  ]);
  const failures = checks.flatMap(({ reason }) => (reason ? [reason.message] : []));
  if (failures.length > 0) throw new SetupError(failures.join("\n"));
  process.stderr.write("style: types, examples, eslint, depcruise and prettier are content\n");
}

const verbs = {
  demo: entry("cli/demo.js"),
  kubexm: entry("cli/main.js"),
  test: entry("test/run.js"),
  bench: entry("bench/main.js"),
  build: () => undefined,
  lint,
  format: () => tool("prettier", "prettier", ["--write", "."]),
};

await start(async () => {
  const [name, ...args] = process.argv.slice(2);
  const verb = Object.hasOwn(verbs, name ?? "") ? verbs[name] : undefined;
  if (!verb) throw new SetupError(`usage: node scripts/run.mjs ${Object.keys(verbs).join("|")} [arguments]`);
  await ready();
  await verb(args);
});
