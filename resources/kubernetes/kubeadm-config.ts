import { stringify } from "yaml";
import { z } from "zod";
import { criSocket } from "../runtime/paths";

const table = z.record(z.string(), z.unknown());

/** The documents of a master's kubeadm configuration that the cluster has in common, as kubeadm takes them. */
export const controlPlane = z
  .object({
    cluster: z
      .looseObject({ etcd: z.looseObject({ local: z.looseObject({ dataDir: z.string() }) }) })
      .describe("ClusterConfiguration"),
    proxy: table.describe("KubeProxyConfiguration"),
  })
  .strict();

export interface Registration {
  name: string;
  /** From its first moment on; later the node's settings see to it. */
  tainted: boolean;
  ignored: readonly string[];
}

export const api = "kubeadm.k8s.io/v1beta4";

const noSchedule = { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" };
/** What keeps the workload's pods off a master, as a node's settings have it. */
export const controlPlaneTaint = `${noSchedule.key}:${noSchedule.effect}`;

export const nodeRegistration = ({ name, tainted, ignored }: Registration) => ({
  name,
  criSocket,
  taints: tainted ? [noSchedule] : [],
  ignorePreflightErrors: ignored,
});

export interface InitSettings extends Registration {
  address: string;
  port: number;
  configuration: z.output<typeof controlPlane>;
}

const documents = (...all: readonly object[]) => all.map((one) => stringify(one)).join("---\n");

/** For `kubeadm init` and its phases on a running cluster. Nothing in it is secret. */
export const initConfiguration = ({ address, port, configuration, ...registration }: InitSettings): string =>
  documents(
    {
      apiVersion: api,
      kind: "InitConfiguration",
      localAPIEndpoint: { advertiseAddress: address, bindPort: port },
      nodeRegistration: nodeRegistration(registration),
    },
    { apiVersion: api, kind: "ClusterConfiguration", ...configuration.cluster },
    { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", ...configuration.proxy },
  );

export interface JoinSettings extends Registration {
  endpoint: string;
  /** Of a further master. */
  local?: { address: string; port: number };
}

/** For `kubeadm join`; token and hash are put in on the host, so that they never stand in a file. */
export const joinConfiguration = ({ endpoint, local, ...registration }: JoinSettings): string =>
  stringify({
    apiVersion: api,
    kind: "JoinConfiguration",
    discovery: { bootstrapToken: { token: "@TOKEN@", apiServerEndpoint: endpoint, caCertHashes: ["@HASH@"] } },
    nodeRegistration: nodeRegistration(registration),
    ...(local && { controlPlane: { localAPIEndpoint: { advertiseAddress: local.address, bindPort: local.port } } }),
  });
