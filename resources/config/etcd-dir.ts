/** kubeadm wants the folder empty, unless it was told that this check may fail. */
export const etcdDirMayBeShared = (etcdDir: string, ignored: readonly string[]) =>
  ignored
    .map((name) => name.toLowerCase())
    .some((name) => name === "all" || name === `diravailable-${etcdDir.replaceAll("/", "-")}`.toLowerCase());
