import { sh } from "../../provider/shell";

/**
 * Its programs stand apart from those of packages. A proxy of whoever logs in is not for the way to the API server, whose name
 * it does not know, nor for the pods of the control plane, which kubeadm would hand it on to.
 */
export const kubeadm = sh`env -u http_proxy -u HTTP_PROXY -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY /usr/local/bin/kubeadm`;
export const adminConf = "/etc/kubernetes/admin.conf";
/** What kubeadm is told on a master, kept for later changes. */
export const kubeadmConf = "/etc/kubernetes/kubexm.yaml";
/** In its entry other steps find the file `member` with the settings it was made with, and `began` on the first. */
export const memberId = "membership in the cluster";
/**
 * For the administrator, at the API server of this very master: the common endpoint may lead to one that is just going.
 * What it learns of the API is kept off root's home folder.
 */
export const kubectl = sh`/usr/local/bin/kubectl --cache-dir /run/kubexm-kubectl --kubeconfig ${adminConf} --server "https://127.0.0.1:$(sed -n 's/.*--secure-port=//p' /etc/kubernetes/manifests/kube-apiserver.yaml)"`;

/**
 * How a script begins that one of so many masters is asked to run: a complaint goes to stderr, and only one that serves can
 * help. The only one is waited for, as it may have been rebooted just now.
 */
export const servingMaster = (masters: number) => sh`say() { printf '%s\n' "$*" >&2; }
left=${masters > 1 ? 1 : 60}
until out=$(${kubectl} --request-timeout 20s get --raw /readyz 2>&1); do
  left=$((left - 1))
  [ $left -gt 0 ] || { say "$out"; exit 1; }
  sleep 1
done`;
