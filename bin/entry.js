"use strict";
const { existsSync } = require("node:fs");
const Module = require("node:module");
const { join } = require("node:path");

const entry = join(__dirname, "..", "dist", "cli", "main.js");
if (existsSync(entry)) {
  process.argv[1] = entry;
  Module.runMain();
} else {
  // A clone that was never built; the published package always has dist/.
  process.argv.splice(2, 0, "kubexm");
  import("../scripts/run.mjs");
}
