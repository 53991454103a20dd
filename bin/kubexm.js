#!/usr/bin/env node
"use strict";
// Of 2009 in its language (the linter holds that): an old Node must come as far as the message, and what follows it cannot even read.
var needed = require("../package.json").engines.node.replace(/^>=/, "");

/** One line if this Node is too old. */
function problem(version) {
  var have = version.split(".").map(Number);
  var want = needed.split(".").map(Number);
  if (have[0] > want[0] || (have[0] === want[0] && have[1] >= want[1])) return undefined;
  return (
    "kubexm needs Node.js " +
    needed +
    " or newer, this is " +
    version +
    ": install it from https://nodejs.org/ or your package manager"
  );
}

var told = problem(process.versions.node);
if (told === undefined) require("./entry.js");
else {
  console.error(told);
  process.exitCode = 1;
}
