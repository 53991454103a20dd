import { sh, type Command } from "../shell";
import type { RemoteError } from "../errors";
import { failure, scrub } from "./failure";
import type { Target } from "./target";

/** How a login user becomes root: not at all, without a password, or with one on stdin. */
export type Elevation = "root" | "nopasswd" | "password";

/** Reads the program as one line, and leaves all that follows on stdin to it. */
const LINE_PROGRAM = 'IFS= read -r program && eval "$program"';
const ELEVATED_SCRIPT = 'echo kubexm:elevated; exec /bin/sh -s "$0"';

/**
 * Finds out on the host how to become root, says so on stdout, and goes on as root. No single quote and no backslash
 * stands in it, so that fish and csh hand it on as it is.
 */
const PROBE = [
  "LC_ALL=C; export LC_ALL",
  'if [ "$(id -u)" = 0 ]; then echo kubexm:root; exec "$@"; fi',
  "command -v sudo >/dev/null 2>&1 || { echo kubexm:nosudo; exit 127; }",
  'if says=$(sudo -n true 2>&1 </dev/null); then echo kubexm:nopasswd; exec sudo -n -- "$@"; fi',
  'case "$says" in *" a tty"*) echo "$says" >&2; exit 1;; esac',
  'echo kubexm:password; exec sudo -S -k -p "" -- "$@"',
].join("; ");

export type Program = "script" | "line";

/** Waits `seconds`, then TERM, ten seconds later KILL, for the program and all it started. */
function bounded(seconds: number, program: Command): Command {
  return sh`timeout -k 10 ${seconds} ${program}`;
}

const PROGRAMS: Readonly<Record<Program, (id: string) => Command>> = {
  script: (id) => sh`/bin/sh -s ${id}`,
  line: (id) => sh`/bin/sh -c ${LINE_PROGRAM} ${id}`,
};

/** The text the login shell gets: nothing of the script stands in it, only how it is run. */
export function commandText(how: Elevation | "user" | "probe", program: Program, seconds: number, id: string): string {
  const plain = bounded(seconds, PROGRAMS[program](id));
  if (how === "probe") {
    const elevated = bounded(seconds, sh`/bin/sh -c ${ELEVATED_SCRIPT} ${id}`);
    return sh`exec /bin/sh -c ${PROBE} ${id} ${elevated}`.text;
  }
  if (how === "nopasswd") return sh`exec env LC_ALL=C sudo -n -- ${plain}`.text;
  if (how === "password") return sh`exec env LC_ALL=C sudo -S -k -p "" -- ${plain}`.text;
  return sh`exec ${plain}`.text;
}

const REFUSALS: readonly { says: RegExp; summary: string; advice: (who: string) => string }[] = [
  {
    says: /must have a tty/,
    summary: "sudo there wants a terminal (requiretty)",
    advice: (who) => `add \`Defaults:${who} !requiretty\` to the host's sudoers (visudo)`,
  },
  {
    says: /not in the sudoers file|not allowed to (execute|run)/,
    summary: "the user may not become root with sudo",
    advice: (who) => `add a rule to the host's sudoers (visudo), such as \`${who} ALL=(ALL) NOPASSWD: ALL\``,
  },
  {
    says: /account (is |has )?(locked|expired)|account validation failure|password.* expired/i,
    summary: "sudo refuses the account itself (locked or expired)",
    advice: () => "unlock the account or renew its password on the host",
  },
  {
    says: /try again|incorrect password|no password was provided|authentication failure/i,
    summary: "sudo refused the password",
    advice: () => "set sudoPassword (or password). It was tried once only and is not tried again in this run",
  },
  {
    says: /a password is required/,
    summary: "sudo wants a password for /usr/bin/timeout, though not for /bin/true",
    advice: (who) => `let the host's sudoers rule cover all commands: \`${who} ALL=(ALL) NOPASSWD: ALL\``,
  },
];

export function sudoFailure(target: Target, stderr: string): RemoteError {
  const known = REFUSALS.find(({ says }) => says.test(stderr));
  return failure(
    target.label,
    "sudo",
    `${target.user}@${target.address} cannot become root: ${known?.summary ?? "sudo failed"}`,
    {
      stderr: scrub(stderr, target),
      advice: known?.advice(target.user) ?? `run \`sudo -v\` on the host as ${target.user} and see what it says`,
    },
  );
}

export function noPassword(target: Target): RemoteError {
  return failure(
    target.label,
    "sudo",
    `${target.user}@${target.address} cannot become root: sudo wants a password, and none is given`,
    {
      advice: `set sudoPassword, or allow it without: \`${target.user} ALL=(ALL) NOPASSWD: ALL\` in the host's sudoers`,
    },
  );
}

export function noSudo(target: Target): RemoteError {
  return failure(target.label, "sudo", `${target.user}@${target.address} cannot become root: there is no sudo`, {
    advice: "install sudo there, or log in as root",
  });
}

/** sudo says so as soon as it has refused a password; it would go on asking. */
export const ASKS_AGAIN = /try again|incorrect password/i;
