import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { unitWords } from "../../resources/kubernetes/kubelet";

describe("arguments of kubelet in its unit's variable", () => {
  for (const [what, args, text] of [
    [
      "plain ones stay as they are",
      ["--v=2", "--node-ip=192.0.2.1,2001:db8::1"],
      "--v=2 --node-ip=192.0.2.1,2001:db8::1",
    ],
    ["a per cent sign would begin a word of systemd's own", ["--x=5%h"], "--x=5%%h"],
    ["quotes would end the variable", [`--x={"a":1}`], String.raw`\"--x={\\\"a\\\":1}\"`],
    ["a value with a space is one word", ["--x=a b", "--v=2"], String.raw`\"--x=a b\" --v=2`],
  ] as const)
    test(what, () => assert.equal(unitWords(args), text));
});
