import { sh } from "../../provider/shell";
import { crictl } from "../runtime/paths";

/** etcdctl of the running static pod: the host needs none of its own. Where it listens depends on the family of addresses. */
export const etcdctl = sh`
etcd_at=$(sed -n 's/.*--listen-client-urls=\([^,]*\).*/\1/p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null)
[ -n "$etcd_at" ] || etcd_at=https://127.0.0.1:2379
etcdctl() {
  ${crictl} exec "$(${crictl} ps --name '^etcd$' -q | head -n 1)" etcdctl --endpoints="$etcd_at" --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt --key=/etc/kubernetes/pki/etcd/healthcheck-client.key "$@"
}`;

/** What finds the line of a node in the list of members: one that never started has no name yet. */
export const grepMember = (name: string, addresses: readonly string[]): string[] => [
  "-F",
  ...[
    `, ${name}, `,
    ...addresses.map((address) => `https://${address.includes(":") ? `[${address}]` : address}:2380,`),
  ].flatMap((text) => ["-e", text]),
];
