/** Where the runtime's programs and its socket are. */
export const crictl = "/usr/local/bin/crictl";
/** By the PATH of every script: one that was adopted has its own place. */
export const ctr = "ctr";
export const criSocket = "unix:///run/containerd/containerd.sock";
