import { sh } from "../../provider/shell";

/** Where the programs of a node stand: apart from those of packages. */
export const kubeadm = "/usr/local/bin/kubeadm";
/** What it learns of the API is kept off root's home folder. */
export const kubectl = sh`/usr/local/bin/kubectl --cache-dir /run/kubexm-kubectl`;
export const crictl = "/usr/local/bin/crictl";
export const adminConf = "/etc/kubernetes/admin.conf";
export const criSocket = "unix:///run/containerd/containerd.sock";
/** What kubeadm is told on a master, kept for later changes. */
export const kubeadmConf = "/etc/kubernetes/kubexm.yaml";
