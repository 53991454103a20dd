import { parse, stringify } from "yaml";
import { CHECKS } from "../../resources/preflight/names.js";

/** What is wanted of the hosts: readiness, the same with a DNS server more, or all of Kubernetes, which is only looked ahead to. */
export type Form = "ready" | "resolving" | "nodes";

interface ClusterFile {
  spec: { hosts: { name: string }[]; kubernetes: object };
}

/** Nobody is there, and says so at once: the host's own servers are asked next. */
const NOBODY = "127.0.0.99";

/** The usual share of a node leaves room for 64. */
const SHARE = { nodeCidrMaskSize: 25 };

/** The cluster.yaml of the first hosts of a lab, from that of the lab. */
export function clusterText(text: string, hosts: number, form: Form): string {
  const cluster = parse(text) as ClusterFile;
  const wanted = cluster.spec.hosts.slice(0, hosts);
  const [first = "", ...rest] = wanted.map(({ name }) => name);
  const forms: Readonly<Record<Form, object>> = {
    ready: { kubernetes: { type: "none", ...SHARE } },
    resolving: { kubernetes: { type: "none", ...SHARE }, extra: { resolves: [{ address: NOBODY }] } },
    // How long it takes to look is measured, not what machine the lab stands on.
    nodes: { kubernetes: { ...cluster.spec.kubernetes, ...SHARE }, ignorePreflight: CHECKS },
  };
  const spec = {
    ...cluster.spec,
    hosts: wanted,
    roleGroups: { etcd: [first], master: [first], worker: rest },
    system: { ntpServers: [first], timezone: "Asia/Shanghai" },
    ...forms[form],
  };
  return stringify({ ...cluster, spec });
}
