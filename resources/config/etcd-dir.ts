/** kubeadm wants the folder empty, unless it was told that this check may fail. */
export const etcdDirMayBeShared = (etcdDir: string, ignored: readonly string[]) =>
  ignored
    .map((name) => name.toLowerCase())
    .some((name) => name === "all" || name === `diravailable-${etcdDir.replaceAll("/", "-")}`.toLowerCase());

export const etcdDirAdvice = (etcdDir: string) =>
  `write a folder of its own to etcd.dataDir, ${etcdDir}/etcd for example, or move away what is there`;
