import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseFixed } from "../../provider/lifecycle";
import { Flannel } from "../../resources/flannel";

test("how packets travel between the nodes of a running cluster cannot be changed: flannel would not hear of it", () => {
  const olds = { drift: [], image: "a", cniImage: "b", podCIDR: ["10.244.0.0/16"], backend: "vxlan" };
  refuseFixed(Flannel.definition, olds, { ...olds, image: "c" });
  assert.throws(
    () => refuseFixed(Flannel.definition, olds, { ...olds, backend: "host-gw" }),
    /backend cannot be changed any more: flannel reads it when it starts/,
  );
});
