import { z } from "zod";
import { ARCHES, fileFor, holdLogin, sources } from "../artifacts";
import { component } from "../provider/component";
import { binary } from "../provider/steps";

export const KubernetesPrograms = component({
  kind: "KubernetesPrograms",
  about: "kubeadm, kubelet and kubectl on a host, before its turn to join has come.",
  args: z.object({
    version: z.string().describe("Version of Kubernetes"),
    arch: z.enum(ARCHES).optional().describe("Processor, where it is known before the host is asked"),
    sources: sources.prefault({}).describe("Where the files are downloaded from"),
  }),
  fixed: { version: "kubexm does not upgrade running clusters yet; write the version back" },
  secretWhere: { sources: holdLogin },
  steps: ({ version, arch, sources }, facts) =>
    (["kubeadm", "kubelet", "kubectl"] as const).map((name) =>
      binary(`/usr/local/bin/${name}`, fileFor(name, version, arch ?? facts.arch, sources)),
    ),
});
