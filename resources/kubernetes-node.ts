import { z } from "zod";
import { component } from "../provider/component";
import { hostSpec } from "../provider/ssh/spec";
import { sh } from "../provider/shell";
import { command, data, file, template, unit } from "../provider/steps";
import { controlPlane, initConfiguration } from "./kubernetes/kubeadm-config";
import { kubeletDropIn, unitWords } from "./kubernetes/kubelet";
import { leave } from "./kubernetes/leave";
import { member, short } from "./kubernetes/member";
import { kubeadmConf } from "./kubernetes/paths";
import { controlPlaneSettings, proxySettings } from "./kubernetes/settings";

const rebuilt = "running pods and certificates hang on it; write it back, or destroy the cluster and make it anew";

const firstOf = (list: unknown): unknown => (Array.isArray(list) ? list[0] : undefined);

export const KubernetesNode = component({
  kind: "KubernetesNode",
  about: "A node of Kubernetes by kubeadm: kubelet, and its place in the cluster, from joining to leaving.",
  args: z.object({
    name: z.string().describe("Name of the node"),
    role: z.enum(["master", "worker"]).describe("master: with a control plane"),
    tainted: z.boolean().default(false).describe("A master that takes no pods of the workload"),
    first: z.boolean().default(false).describe("Begins the cluster if no other master has one"),
    addresses: z.array(z.string()).min(1).describe("Addresses of the node, one per family"),
    endpoint: z.string().describe("Name and port under which all reach the API servers"),
    port: z.number().int().default(6443).describe("Port of the API server on a master"),
    masters: z.array(hostSpec).describe("The other masters: they let this node in, and take it off their lists"),
    controlPlane: controlPlane.optional().describe("What a master tells kubeadm"),
    nodeCidrMaskSize: z
      .string()
      .optional()
      .describe("On a master: how large nodes' shares of the pod ranges are, as said to kubeadm; not to be changed"),
    endpointAddress: z.string().optional().describe("Where the endpoint's name leads to now; kube-proxy follows it"),
    kubelet: z.record(z.string(), z.unknown()).default({}).describe("Laid over kubeadm's KubeletConfiguration"),
    kubeletArgs: z.array(z.string()).default([]).describe("More arguments of kubelet"),
    ignorePreflightErrors: z.array(z.string()).default([]).describe("Checks of kubeadm that may fail"),
    leftovers: z.enum(["refuse", "clean"]).default("refuse").describe("What to do with remains of another cluster"),
    drain: z
      .object({ timeout: z.number().int().default(300), force: z.boolean().default(false) })
      .strict()
      .prefault({})
      .describe("How the node is emptied before it goes"),
  }),
  fixed: {
    addresses: {
      where: (was, is, { role }) => role === "master" && firstOf(was) !== firstOf(is),
      reason:
        "etcd and the API server of a master stand at the first of them; write it back, or take the host out of its groups, run up, and add it again",
    },
    role: "take the host out of its groups, run up, and add it again",
    "controlPlane.cluster.kubernetesVersion": "kubexm does not upgrade running clusters yet; write the version back",
    "controlPlane.cluster.networking": rebuilt,
    "controlPlane.cluster.etcd": rebuilt,
    nodeCidrMaskSize:
      "nodes keep the share of the pod range they were given, and shares of two sizes would overlap; write nodeCidrMaskSize (and nodeCidrMaskSizeIPv6) back, or destroy the cluster and make it anew",
    "controlPlane.cluster.controlPlaneEndpoint": rebuilt,
  },
  steps: (args) => {
    const { name, role, addresses, endpoint, port, kubelet, kubeletArgs, ignorePreflightErrors } = args;
    const [address = ""] = addresses;
    const registration = { name, tainted: args.tainted, ignored: ignorePreflightErrors };
    const local = { address, port };
    const init =
      role === "master" && args.controlPlane
        ? { ...registration, ...local, configuration: args.controlPlane }
        : undefined;
    const settings = short(init?.configuration.cluster ?? {});
    const etcdDir = init?.configuration.cluster.etcd.local.dataDir;
    const service = template("/etc/systemd/system/kubelet.service", "kubernetes/kubelet.service", {});
    const environment = template("/etc/systemd/system/kubelet.service.d/10-kubexm.conf", "kubernetes/kubelet.conf", {
      args: unitWords([`--node-ip=${addresses.join(",")}`, `--hostname-override=${name}`, ...kubeletArgs]),
    });
    const configuration = file("/etc/kubernetes/kubelet.conf.d/50-kubexm.conf", kubeletDropIn(kubelet));
    return [
      ...["/etc/kubernetes", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"].map((path) => data(path)),
      ...(etcdDir === undefined ? [] : [data(etcdDir, "0700")]),
      service,
      environment,
      configuration,
      ...(init ? [file(kubeadmConf, initConfiguration(init), { mode: "0600" })] : []),
      // A master that is rebooted in the middle of its join is a member of etcd that the others may not do without.
      command("kubelet starts with the host", {
        doneWhen: sh`systemctl is-enabled -q kubelet`,
        run: sh`systemctl enable -q kubelet`,
        undo: sh`systemctl disable -q kubelet`,
      }),
      member({
        ...registration,
        endpoint,
        ...(init && { local }),
        ...(etcdDir !== undefined && { etcdDir }),
        first: args.first,
        masters: args.masters,
        settings,
        leftovers: args.leftovers,
      }),
      ...(init ? [controlPlaneSettings(settings)] : []),
      ...(init && args.endpointAddress !== undefined
        ? [proxySettings([init.configuration.proxy, args.endpointAddress], settings)]
        : []),
      // Last: a kubelet that starts while manifests change takes minutes to see what it has to end.
      unit("kubelet.service", {
        enabled: true,
        running: true,
        // It ends over what it cannot follow only when it has found the runtime.
        steady: 6,
        restartOn: [service, environment, configuration],
      }),
    ];
  },
  farewell: ({ name, role, addresses, masters, drain }, { lost }) =>
    leave({ name, role, addresses, masters, drain, lost }),
});
