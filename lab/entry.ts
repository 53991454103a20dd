/** How people and programs log in to a host. */
export interface Login {
  /** Login name; root when not given. */
  user?: string;
  /** With the lab's key, or with a password only. */
  login?: "key" | "password";
  /** For a user who is not root. */
  sudo?: "free" | "password";
}

export interface HostOptions extends Login {
  /** As Docker writes it: 512m, 2g. */
  memory?: string;
  /** Login shell of the user. */
  shell?: string;
  /** Lines of sshd_config: { MaxSessions: 2 }. */
  sshd?: Readonly<Record<string, string | number>>;
  /** Small file systems, path to size, for what happens when one is full: { "/opt": "8m" }. */
  tmpfs?: Readonly<Record<string, string>>;
}

export interface Entry extends HostOptions {
  name: string;
  password?: string;
  publicKey: string;
  /** Name servers for the host; none: it uses Docker's own. */
  nameServers: readonly string[];
}

export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const lines = (...all: readonly (string | false)[]) => all.filter((line) => line !== false).join("\n");

function firstBoot({ name, user = "root", login = "key", sudo = "free", shell, sshd = {}, ...rest }: Entry): string {
  const { password, publicKey, nameServers } = rest;
  const home = user === "root" ? "/root" : `/home/${user}`;
  const sshdConfig = { ...(user === "root" ? { PermitRootLogin: "yes" } : {}), ...sshd };
  const hosts = `127.0.0.1\tlocalhost\n127.0.1.1\t${name}\n::1\tlocalhost ip6-localhost ip6-loopback\n`;
  return lines(
    `printf %s ${quote(hosts)} >/etc/hosts`,
    `echo ${quote(name)} >/etc/hostname`,
    nameServers.length > 0 && `printf 'nameserver %s\\n' ${nameServers.map(quote).join(" ")} >/etc/resolv.conf`,
    "ssh-keygen -q -t ed25519 -N '' -C '' -f /etc/ssh/ssh_host_ed25519_key",
    `printf '%s\\n' ${Object.entries(sshdConfig)
      .map(([key, value]) => quote(`${key} ${value}`))
      .join(" ")} >/etc/ssh/sshd_config.d/50-lab.conf`,
    user !== "root" && `useradd --create-home --shell /bin/bash ${quote(user)}`,
    shell !== undefined && `usermod --shell ${quote(shell)} ${quote(user)}`,
    password !== undefined && `echo ${quote(`${user}:${password}`)} | chpasswd`,
    login === "key" &&
      lines(
        `install -d -m 700 -o ${quote(user)} ${home}/.ssh`,
        `echo ${quote(publicKey)} >${home}/.ssh/authorized_keys`,
        `chown ${quote(user)}: ${home}/.ssh/authorized_keys`,
        `chmod 600 ${home}/.ssh/authorized_keys`,
      ),
    user !== "root" &&
      lines(
        `echo ${quote(`${user} ALL=(ALL:ALL) ${sudo === "free" ? "NOPASSWD: " : ""}ALL`)} >/etc/sudoers.d/50-lab`,
        "chmod 440 /etc/sudoers.d/50-lab",
      ),
    "tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id",
  );
}

/**
 * What a host's container runs: makes it a machine of its own, then becomes systemd. It comes as an argument, not as a mounted
 * file, so that the host sees nothing of it.
 */
export function entryScript(entry: Entry): string {
  return lines(
    // Docker binds these three from outside, where no program could replace them by renaming.
    "for file in hosts hostname resolv.conf; do umount /etc/$file; done",
    // An empty machine-id tells the first boot.
    "if [ ! -s /etc/machine-id ]; then",
    firstBoot(entry),
    "fi",
    // The rules of Docker's name server are not the host's.
    entry.nameServers.length > 0 && "nft flush ruleset",
    // cgroup version 1 comes read-only, and kubelet needs it writable from before systemd looks at it.
    "if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then",
    "umount /sys/fs/cgroup/unified 2>/dev/null",
    'for tree in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "${tree%/}" 2>/dev/null; done',
    "fi",
    "mount -o remount,rw /sys/fs/cgroup 2>/dev/null",
    "mount --make-rshared /",
    "exec env -i container=docker /sbin/init",
  );
}
