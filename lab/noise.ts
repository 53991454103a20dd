/** What changes on a host by itself, or by using it, without anybody having set it up otherwise. */
interface Noise {
  kind: string;
  /** The whole name must match. */
  name: RegExp;
  why: string;
}

/** Folders that are not even looked at: they are large, or not files at all. */
export const UNSEEN: Readonly<Record<string, string>> = {
  "/proc": "the kernel's; sysctl and modules are compared by name",
  "/sys": "the kernel's",
  "/dev": "devices, made at boot",
  "/run": "empty after every boot",
  "/var/log": "logs",
  "/var/cache": "caches of package tools",
  "/var/lib/apt/lists": "package indexes, fetched again at will",
};

const file = (name: RegExp, why: string): Noise => ({ kind: "file", name, why });
const sysctl = (name: RegExp, why: string): Noise => ({ kind: "sysctl", name, why });

export const NOISE: readonly Noise[] = [
  file(/\/var\/lib\/dpkg\/(status|available|diversions|statoverride)-old/, "dpkg's copy of the state before"),
  file(/\/var\/lib\/dpkg\/(status|available)/, "packages are compared by name, version and state"),
  file(/\/var\/lib\/dpkg\/(lock(-frontend)?|triggers\/Lock|triggers\/Unincorp)/, "locks of dpkg"),
  file(/\/var\/lib\/apt\/(extended_states|periodic(\/.*)?|daily_lock)/, "marks are compared by package; time stamps"),
  file(/\/var\/lib\/ucf\/.*\.\d+/, "ucf's numbered copies of the state before"),
  file(/\/etc\/((passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock)/, "copies of the state before, and a lock"),
  file(/\/(etc|var)\/\.updated/, "systemd's time stamp"),
  file(/\/etc\/ld\.so\.cache/, "made from the libraries that are there"),
  file(
    /\/var\/lib\/systemd\/(random-seed|catalog(\/.*)?|timers(\/.*)?|timesync\/clock)/,
    "seed, made data, time stamps",
  ),
  file(/\/(var\/)?tmp\/systemd-private-.*/, "private folders of running units"),
  file(/\/(root|home\/[^/]+)\/\.(bash_history|lesshst|viminfo|cache(\/.*)?)/, "what was typed"),
  file(/.*\/__pycache__(\/.*)?/, "compiled when first run"),
  sysctl(/fs\.(dentry-state|file-nr|inode-nr|inode-state|aio-nr)/, "counters"),
  sysctl(/fs\.quota\..*/, "counters"),
  sysctl(/kernel\.(ns_last_pid|random\..*|pty\.nr|tainted|perf_event_max_sample_rate)/, "counters"),
  sysctl(
    /net\.netfilter\.nf_conntrack_(count|buckets|max|expect_max)/,
    "counters, and sizes shared by the whole machine",
  ),
  sysctl(/vm\.(stat_refresh|compact_memory|drop_caches)/, "not settings"),
  { kind: "unit", name: /.*\.(device|scope|slice|mount|automount)/, why: "made by the kernel or by logging in" },
  { kind: "unit", name: /(user@|user-runtime-dir@|run-|sshd?@).*/, why: "made by logging in" },
  { kind: "unit", name: /systemd-(tmpfiles-clean|hostnamed|timedated|localed)\.service/, why: "run now and then" },
  {
    kind: "unit",
    name: /(time-(set|sync)|remote-fs-pre|rpcbind)\.target/,
    why: "a point in the boot order, reached for good once a clock was set",
  },
  {
    kind: "unit",
    name: /network-online\.target/,
    why: "reached once something waited for it; stays so until a reboot",
  },
  { kind: "port", name: /(tcp|udp) 127\.0\.0\.11:\d+/, why: "Docker's name server; other ports after every start" },
  { kind: "mount", name: /\/run\/(credentials|user)\/.*/, why: "made by starting units and logging in" },
  { kind: "mount", name: /\/proc\/sys\/fs\/binfmt_misc/, why: "mounted when first looked at" },
];

export function isNoise(kind: string, name: string): boolean {
  return NOISE.some((noise) => {
    const match = noise.kind === kind ? noise.name.exec(name) : null;
    return match !== null && match[0] === name;
  });
}
