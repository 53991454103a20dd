import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { lib } from "../../provider/lib";

/** Nothing of this machine is touched: its files are those of the test, and nobody is told. */
const placed = lib.text
  .replaceAll(/\/etc\/(fstab|selinux\/config|nftables\.conf)\b/g, '"$ROOT"/etc/it')
  .replaceAll(/\/etc\/(passwd|shadow|group|gshadow)\./g, '"$ROOT"/etc/$1.')
  .replaceAll(/\/etc\/(systemd|sysconfig)\//g, '"$ROOT"/nowhere/')
  .replaceAll("/usr/lib/systemd", '"$ROOT"/nowhere')
  .replaceAll("/proc/self/mounts", '"$ROOT"/mounts');

/** What changes the machine does nothing; what keeps an order is noted, and done. */
const stand = `systemctl() { :; }; swapon() { :; }; in_container() { :; }; chown() { :; }
mkdir -p "$ROOT/programs"
for program in sync mv umount; do
  printf '#!/bin/sh\necho "%s $*" >>"$ROOT/said"\n' $program >"$ROOT/programs/$program" && chmod 755 "$ROOT/programs/$program"
done
echo 'exec /bin/mv "$@"' >>"$ROOT/programs/mv"
PATH=$ROOT/programs:$PATH M=@m entry=$PWD L=$ROOT/ledger S=$ROOT/staging`;

export interface LibHost {
  /** In the folder of a ledger entry, with the library, in one of the shells that hosts have. */
  readonly run: (
    shell: string,
    ...script: string[]
  ) => { readonly status: number | null; readonly stdout: string; readonly stderr: string };
  /** What sync, mv and umount were asked for, in order. */
  readonly said: () => string[];
  readonly read: (path: string) => string | undefined;
  readonly list: (path: string) => string[];
  readonly root: string;
  readonly end: () => void;
}

/** The library on a host in a folder, with these files below it. */
export function libHost(given: Readonly<Record<string, string>>): LibHost {
  const root = mkdtempSync(join(tmpdir(), "kubexm-lib-"));
  for (const folder of ["etc", "entry", "ledger", "staging"]) mkdirSync(join(root, folder));
  for (const [path, text] of Object.entries({ mounts: "", said: "", "lib.sh": placed, ...given })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const read = (path: string) => (existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined);
  return {
    run: (shell, ...script) =>
      spawnSync(shell, ["-c", ['. "$ROOT/lib.sh"', stand, ...script].join("\n")], {
        cwd: join(root, "entry"),
        env: { ...process.env, ROOT: root },
        encoding: "utf8",
      }),
    said: () => (read("said") ?? "").replaceAll(`${root}/`, "").trim().split("\n"),
    read,
    list: (path) => readdirSync(join(root, path)).sort(),
    root,
    end: () => rmSync(root, { recursive: true, force: true }),
  };
}
