import { sh } from "../../provider/shell";
import { crictl } from "../runtime/paths";

/** etcdctl of the running static pod: the host needs none of its own. */
export const etcdctl = sh`
etcdctl() {
  ${crictl} exec "$(${crictl} ps --name '^etcd$' -q | head -n 1)" etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt --key=/etc/kubernetes/pki/etcd/healthcheck-client.key "$@"
}`;
