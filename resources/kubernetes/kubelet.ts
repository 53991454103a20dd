import { stringify } from "yaml";

/** Read by kubelet after kubeadm's file, so that a change is one file and a restart. */
export const kubeletDropIn = (configuration: Readonly<Record<string, unknown>>): string =>
  stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...configuration });

/**
 * Arguments as the value of a variable in a unit file, which systemd takes apart twice: where it reads the file, and where it
 * puts the variable into the command.
 */
export const unitWords = (args: readonly string[]): string => {
  const words = args.map((arg) => (/[\s"'\\]/.test(arg) ? `"${arg.replace(/["\\]/g, "\\$&")}"` : arg));
  return words.join(" ").replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("%", "%%");
};
