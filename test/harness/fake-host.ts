import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Remote } from "../../provider/ssh/remote";
import { execRemote } from "./exec-remote";

/**
 * A host for what no lab host has: a folder stands for its root, and programs of the test's own stand before the real
 * ones. Absolute paths that begin like one of these are moved into it, in scripts of the engine as in those of the test.
 */
const MOVED = [
  ...["etc", "run", "var/lib/kubexm", "var/lib/etcd", "var/log/pods", "usr/lib/systemd", "usr/local/bin"],
  ...["lib/modules", "proc/sys", "proc/swaps", "sys"],
];

export interface FakeHost {
  readonly remote: Remote;
  /** What the fake programs were asked to do. */
  readonly calls: () => string[];
  readonly read: (path: string) => string;
  readonly has: (path: string) => boolean;
  readonly end: () => void;
}

/** On every fake host: only root may give files away, and nothing may reach this machine's own systemd. */
const harmless = {
  chown: ":",
  sync: ":",
  systemctl: ":",
  "systemd-detect-virt": "exit 1",
  stat: `command -p stat "$@" | sed "s/ $(id -un) $(id -gn) / root root /; s/^owner=.*/owner=root/; s/^group=.*/group=root/"`,
};

/** Runs standard input as a script, with its paths moved in, and moved back out of what it prints; rpm's hosts have no apt. */
const runner = (root: string, rpm: boolean) => {
  const hide = rpm ? "s#command -v apt-get#false#;" : "";
  const move = `s#(^|[^A-Za-z0-9_.}-])/(${MOVED.join("|")})([]/ "'$;)]|$)#\\1${root}/\\2\\3#g`;
  return `#!/bin/sh
cd ${root} || exit 255
sed -E '${hide}${move.replaceAll("'", "'\\''")};${move.replaceAll("'", "'\\''")}' >script
PATH=${root}/bin:$PATH /bin/sh script >out 2>err
code=$?
sed 's#${root}##g' out
sed 's#${root}##g' err >&2
exit $code
`;
};

/** Files by path; programs by name, as shell text that may use $ROOT. Each call of a program is noted with its arguments. */
export function fakeHost(
  files: Readonly<Record<string, string>>,
  programs: Readonly<Record<string, string>>,
): FakeHost {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kubexm-fake-")));
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const folder of ["etc", "run", "var/lib", "proc/sys", "usr/local"])
    mkdirSync(join(root, folder), { recursive: true });
  // Programs that are called by their full path are those of the test, too.
  symlinkSync("../../bin", join(root, "usr/local/bin"));
  put("calls", "");
  put("runner", runner(root, "rpm" in programs));
  for (const [path, text] of Object.entries(files)) put(path, text);
  for (const [name, text] of Object.entries({ ...harmless, ...programs })) {
    const note = name in programs ? `echo "${name} $*" >>${root}/calls` : ":";
    put(`bin/${name}`, `#!/bin/sh\n${note}\nROOT=${root}\n${text}\n`);
    chmodSync(join(root, "bin", name), 0o755);
  }
  return {
    remote: execRemote("fake", ["/bin/sh", join(root, "runner")]),
    calls: () =>
      readFileSync(join(root, "calls"), "utf8")
        .split("\n")
        .filter((line) => line !== ""),
    read: (path) => readFileSync(join(root, path), "utf8"),
    has: (path) => existsSync(join(root, path)),
    end: () => rmSync(root, { recursive: true, force: true }),
  };
}
