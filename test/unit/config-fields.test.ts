import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSpec } from "../../resources/config/index";
import { pathText } from "../../resources/config/problems";

/** What is handed on to kubelet or kube-proxy, and what of it is warned of. */
const CASES: ["kubeletConfiguration" | "kubeProxyConfiguration", object, string[]][] = [
  ["kubeletConfiguration", { maxPods: 50, apiVersion: "kubelet.config.k8s.io/v1beta1", logging: null }, []],
  ["kubeletConfiguration", { maxpods: 50 }, [".maxpods maxPods"]],
  ["kubeletConfiguration", { ofTomorrow: 1, evictionHrd: {} }, [".ofTomorrow ", ".evictionHrd evictionHard"]],
  ["kubeletConfiguration", { memorySwap: { swapBehaviour: "NoSwap" } }, [".memorySwap.swapBehaviour swapBehavior"]],
  ["kubeletConfiguration", { evictionHard: { "nodefs.available": "5%" }, reservedMemory: [{ any: 1 }] }, []],
  ["kubeletConfiguration", { authentication: { anonymous: { deeper: true } } }, []],
  ["kubeProxyConfiguration", { conntrak: { min: 0 } }, [".conntrak conntrack"]],
  ["kubeProxyConfiguration", { ipvs: { excludeCIDR: [] } }, [".ipvs.excludeCIDR excludeCIDRs"]],
  ["kubeProxyConfiguration", { conntrack: { maxPerCore: 0, min: 0 }, nodePortAddresses: ["primary"] }, []],
];

for (const [argument, written, wanted] of CASES)
  test(`${argument} ${JSON.stringify(written)}: ${wanted.join(", ") || "nothing"} is warned of`, () => {
    const { value, problems } = checkSpec({
      hosts: [{ name: "m1", address: "192.0.2.1" }],
      roleGroups: { master: ["m1"] },
      kubernetes: { [argument]: written },
    });
    assert.ok(value, "warnings refuse nothing");
    const told = problems.map(({ path, message }) => `${pathText(path)} ${/; write (\S+)$/.exec(message)?.[1] ?? ""}`);
    assert.deepEqual(
      told,
      wanted.map((rest) => `kubernetes.${argument}${rest}`),
    );
  });
