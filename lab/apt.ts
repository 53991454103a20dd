import { UserError, messageOf } from "../toolchain/errors.js";
import { run } from "../toolchain/process.js";
import { showing } from "../toolchain/progress.js";
import { withLock } from "./lock.js";

/**
 * A package's services must neither start now nor at the next boot because a lab needed its programs: hence the policy.
 * The lock on package lists is one that apt does not wait for, whatever it is told.
 */
export const installScript = ({ policy, patience }: { policy: string; patience: number }) => `
set -e
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=${policy}
patience=${patience}
if [ ! -e $policy ]; then
  printf '#!/bin/sh\\nexit 101\\n' >$policy
  chmod 755 $policy
  trap 'rm -f $policy' EXIT
fi
until said=$(apt-get update -qq 2>&1); do
  case $said in *"Could not get lock"*) ;; *) patience=0 ;; esac
  [ $patience -gt 0 ] || { printf '%s\\n' "$said" >&2; exit 100; }
  patience=$((patience - 2))
  sleep 2
done
more=
case " $* " in
*" docker.io "*) more=$(apt-cache search --names-only '^docker-cli$' | cut -d' ' -f1) ;;
esac
apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=$patience "$@" $more
case " $* " in
*" docker.io "*) systemctl disable docker.service docker.socket containerd.service 2>/dev/null || true ;;
esac
`;

/** Another package manager may be at work, as one is for a while after a machine's first boot: ten minutes. */
const INSTALL = installScript({ policy: "/usr/sbin/policy-rc.d", patience: 600 });

/** Why apt gave up: its own errors, else the last that was said. */
export function lastWords(error: unknown): string {
  const lines = messageOf(error).trimEnd().split("\n");
  const errors = lines.filter((line) => line.startsWith("E: "));
  return errors.length > 0 ? errors.join("; ") : (lines.at(-1) ?? "");
}

/**
 * Installs what is missing, one process of this machine at a time: a demo wants packages for the lab and for what it builds at
 * the same moment. What another one has installed meanwhile is not asked for again.
 */
export async function inTurn(
  missing: () => Promise<readonly string[]>,
  install: (packages: readonly string[]) => Promise<unknown>,
  lock = "apt",
): Promise<void> {
  if ((await missing()).length === 0) return;
  await withLock(lock, async () => {
    const packages = await missing();
    if (packages.length > 0) await install(packages);
  });
}

export interface Need {
  /** What needs the packages. */
  what: string;
  /** Those that are not there. */
  missing: () => Promise<readonly string[]>;
  /** Whether this machine has apt-get. */
  hasApt: () => Promise<boolean>;
  /** What a person can do in place of it. */
  advice: string;
}

/** Installs Debian packages, where that can be done without asking. */
export async function needPackages({ what, missing, hasApt, advice }: Need): Promise<void> {
  await inTurn(missing, async (packages) => {
    const names = packages.join(", ");
    if (process.getuid?.() !== 0)
      throw new UserError(
        `${what} needs ${names}: install them (apt-get install ${packages.join(" ")}), or run as root`,
      );
    if (!(await hasApt())) throw new UserError(`${what} needs ${names}, and there is no apt-get here: ${advice}`);
    await showing(`Installing ${names}`, (bar) =>
      run("sh", ["-c", INSTALL, "sh", ...packages], { onLine: (line) => bar.update(line) }),
    ).catch((error: unknown) => {
      throw new UserError(`${what}: apt-get could not install ${names} (${lastWords(error)}): ${advice}`, {
        cause: error,
      });
    });
  });
}
