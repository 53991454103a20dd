/** Where the runtime's programs and its socket are. */
export const crictl = "/usr/local/bin/crictl";
export const ctr = "/usr/local/bin/ctr";
export const criSocket = "unix:///run/containerd/containerd.sock";
