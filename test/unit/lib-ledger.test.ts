import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { bulks } from "../../provider/bulk";
import { libHost, type LibHost } from "../harness/lib-host";

const hosts: LibHost[] = [];
after(() => hosts.forEach(({ end }) => end()));
function host(given: Readonly<Record<string, string>> = {}): LibHost {
  const made = libHost(given);
  hosts.push(made);
  return made;
}
const ok = ({ status, stderr }: ReturnType<LibHost["run"]>) => assert.equal(status, 0, stderr);
/** The files that were synced before a line like this. */
const syncedBefore = (said: string[], line: RegExp) => {
  const end = said.findIndex((text) => line.test(text));
  assert.notEqual(end, -1, said.join("\n"));
  return said
    .slice(0, end)
    .filter((text) => text.startsWith("sync "))
    .join(" ")
    .split(" ");
};

describe("what was saved is on the disk before anything is changed", () => {
  const saves: readonly [what: string, save: string, files: readonly string[]][] = [
    ["a file", 'save_path "$ROOT/etc/it"', ["body"]],
    ["a folder in place of a file", 'save_path "$ROOT/etc/folder"', ["body/one", "body/.two"]],
    ["a data folder", 'save_data "$ROOT/etc/folder"', ["had", "rights", "mounts"]],
    ["swap", "save_swap", ["active", "fstab"]],
    ["DNS servers", "save_resolver", ["servers", "places"]],
    ["whatever else", "echo x >kernel; mkdir -p own/deep; echo x >own/deep/unit", ["kernel", "own/deep/unit"]],
  ];
  for (const [what, save, files] of saves)
    test(what, () => {
      const { run, said } = host({ "etc/it": "theirs\n", "etc/folder/one": "1\n", "etc/folder/.two": "2\n" });
      const nothing = "nothing() { echo before=1; }";
      ok(
        run(
          "dash",
          nothing,
          `save() { ${save}; }`,
          "begin_entries k1 && prepare_entry k1 thing Owner nothing save nothing && enter_prepared",
        ),
      );
      const synced = syncedBefore(said(), /^mv .*ledger\/\.new\/k1 .*ledger\/$/);
      for (const file of ["", "/prior", "/undo", "/n", "/id", ...files.map((file) => `/${file}`)])
        assert.ok(synced.includes(`ledger/.new/k1${file}`), `${file} of ${synced.join(" ")}`);
    });
  test("new files by one call before they are told, others each before it goes in place", () => {
    const { run, said } = host({ "etc/old": "theirs\n", "ledger/k1/id": "", "ledger/k2/id": "", "ledger/k3/id": "" });
    const names = ["new", "old", "newer"];
    const steps = names.map(
      (name, i) =>
        `step_${i}() { put_file "$ROOT/etc/${name}" 0644 root:root printf x; }; look_${i}() { echo "told $entry" >>"$ROOT/said"; }`,
    );
    const paths = names.map((name) => `$ROOT/etc/${name}`).join(" ");
    ok(run("dash", ...steps, `make_all "${paths}" 0:k1 1:k2 2:k3`));
    assert.deepEqual(
      said().map((line) => line.replace(/^mv .* /, "mv ")),
      [
        "mv etc/new",
        "sync -- etc/.kubexm-old",
        "mv etc/old",
        "mv etc/newer",
        "sync -- etc/new etc/newer",
        ...["told ledger/k1", "told ledger/k2", "told ledger/k3"],
      ],
    );
  });
  test("one call for all files of all entries", () => {
    const { run, said } = host({ "etc/it": "theirs\n" });
    ok(
      run(
        "dash",
        'nothing() { echo before=1; }; save() { save_path "$ROOT/etc/it"; }',
        "begin_entries k1 k2 k3 && for key in k1 k2 k3; do prepare_entry $key $key Owner nothing save nothing || exit 1; done; enter_prepared",
      ),
    );
    assert.equal(said().filter((text) => text.startsWith("sync")).length, 2);
  });
  test("where an opening was closed that came up since, before it is opened", () => {
    const { run, said, read, root } = host();
    const firewall = `which_firewall() { fw=test; }; places_test() { echo "now public"; echo "now new"; }; has_test() { return 1; }
open_test() { mv -- "$ROOT/nowhere" "$ROOT/opened"; }`;
    const at = `at="$L/$(entry_of 22/tcp)" && mkdir -p "$at" && echo "now public" >"$at/places" && echo "test now public" >"$at/closed"`;
    mkdirSync(join(root, "nowhere"));
    ok(run("dash", firewall, at, "set -e", "make_openings 22/tcp"));
    const synced = syncedBefore(said(), /^mv .* opened$/).find((file) => file.endsWith("/closed"));
    assert.equal(read(synced ?? ""), "test now public\ntest now new\n");
  });
  const backs: readonly [what: string, files: Readonly<Record<string, string>>, call: string][] = [
    ["an original", { "entry/prior": "type=file\n", "entry/body": "x" }, 'restore_path "$ROOT/etc/it"'],
    ["a file without our block", { "etc/it": "a\nB\nE\n" }, 'undo_block "$ROOT/etc/it" B E'],
    ["swap", { "etc/it": "#kubexm# swap\n", "entry/fstab": "", "entry/units": "", "entry/active": "" }, "undo_swap"],
    ["rules", { "etc/it": 'comment "kubexm 1/tcp"\n' }, "shut_nftables 1/tcp 'file input inet t c'"],
  ];
  for (const [what, files, call] of backs)
    test(`${what}, before the other copy of it goes`, () => {
      const { run, said } = host(files);
      ok(run("dash", "set -e", call));
      assert.ok(syncedBefore(said(), /^mv .*etc\/\.kubexm-it etc\/it$/).includes("etc/.kubexm-it"));
    });
  test("what is set aside", () => {
    const { run, said, read } = host({ "etc/it": "x" });
    ok(run("dash", 'set_aside "$ROOT/etc/it" own'));
    assert.deepEqual([read("etc/it"), read("entry/own/it")], [undefined, "x"]);
    assert.deepEqual(
      said().map((text) => text.replace(/ .*/, "")),
      ["sync", "mv", "sync"],
    );
  });
});

describe("what was sent to another file system than our folder's", () => {
  const staged = `mkdir -p "$S/A" "$ROOT/opt" && ln -s "$ROOT/opt/.kubexm-A-1" "$S/A/sum" && echo new >"$ROOT/opt/.kubexm-A-1" && echo half >"$ROOT/opt/..kubexm-A-1.0f"`;
  const put = `entry=$PWD; is_owned() { :; }; (S=$S/A shared=; need_dir() { mkdir -p "$1"; }; put_staged sum "$ROOT/opt/bin/tool" 0755 root:root)`;
  const unstaged = `unstage "$S/A"`;
  for (const shell of ["dash", "bash"])
    for (const [name, scripts, left] of [
      ["is put in its place, and no half is left", [put, unstaged], ["bin"]],
      ["and not used goes", [unstaged], []],
    ] as const)
      test(`${name}, by ${shell}`, () => {
        const { run, list, read } = host({});
        ok(run(shell, "set -e", staged, ...scripts));
        assert.deepEqual([list("opt"), list("staging")], [[...left], []]);
        assert.equal(read("opt/bin/tool"), left.length > 0 ? "new\n" : undefined);
      });
});

describe("files of the administrator where an archive puts its own", () => {
  const mine = { "bin/tap": "mine\n", "bin/bridge": "mine, too\n", "bin/else": "never touched\n" };
  const archives: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    v1: { bridge: "v1" },
    v2: { bridge: "v2", tap: "v2" },
    v3: { bridge: "v3", "deep/new": "v3" },
  };
  function withArchives() {
    const made = host(mine);
    for (const [version, files] of Object.entries(archives)) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(made.root, version, name)), { recursive: true });
        writeFileSync(join(made.root, version, name), text);
      }
      execFileSync("tar", ["-cf", join(made.root, "staging", version), "-C", join(made.root, version), "."]);
    }
    return made;
  }
  const put = (version: string) => `put_archive ${version} "$ROOT/bin" 0`;
  const undo = 'undo_archive "$ROOT/bin"';
  const back = ({ list, read }: LibHost) =>
    Object.fromEntries(list("bin").flatMap((name) => (name === "deep" ? [] : [[`bin/${name}`, read(`bin/${name}`)]])));
  const rows: readonly string[][] = [["v1"], ["v2"], ["v1", "v2"], ["v1", "v2", "v1"], ["v1", "v3", "v2", "v3"]];
  for (const shell of ["dash", "bash"])
    for (const versions of rows)
      test(`${versions.join(", ")} and undo, by ${shell}`, () => {
        const made = withArchives();
        for (const version of versions) {
          ok(made.run(shell, "set -e", put(version)));
          for (const [name, text] of Object.entries(archives[version] ?? {}))
            assert.equal(made.read(`bin/${name}`), text);
        }
        ok(made.run(shell, "set -e", undo));
        assert.deepEqual(back(made), mine);
      });
  test("a put that ends half way, and the next one", () => {
    const made = withArchives();
    const dies = 'mv() { case $* in *bin/tap) exit 9 ;; *) command mv "$@" ;; esac; }';
    ok(made.run("dash", "set -e", put("v1")));
    assert.equal(made.run("dash", dies, "set -e", put("v2")).status, 9);
    ok(made.run("dash", "set -e", put("v2")));
    ok(made.run("dash", "set -e", undo));
    assert.deepEqual(back(made), mine);
  });
  test("they are on the disk before the first of ours comes", () => {
    const made = withArchives();
    ok(made.run("dash", "set -e", put("v2")));
    const synced = syncedBefore(made.said(), /^mv .*\.kubexm-unpack\//);
    for (const file of ["had.tar.new", "had.new", "ever.new", "."]) assert.ok(synced.includes(file), file);
  });
});

describe("mounts below a data folder", () => {
  const mounts = (root: string, ...paths: string[]) =>
    writeFileSync(join(root, "mounts"), paths.map((path) => `/dev/x ${join(root, path)} ext4 rw 0 0\n`).join(""));
  test("those that were there before stay, those of pods and of later do not", () => {
    const { run, said, root, list } = host({ "kubelet/pods/.keep": "", "ledger/k1/prior": "type=directory\n" });
    const old = ["kubelet/pods", "kubelet/pods/1/volumes/old"];
    mounts(root, ...old, "elsewhere");
    ok(run("dash", 'cd "$L/k1" && save_data "$ROOT/kubelet"'));
    mounts(root, ...old, "kubelet/pods/2/volumes/new", "kubelet/later", "elsewhere");
    mkdirSync(join(root, "kubelet/later"));
    ok(run("dash", 'cd "$L/k1" && entry=$PWD', "set -e", 'undo_data "$ROOT/kubelet"'));
    assert.deepEqual(
      said().filter((text) => text.startsWith("umount")),
      ["umount -- kubelet/pods/2/volumes/new", "umount -- kubelet/pods/1/volumes/old", "umount -- kubelet/later"],
    );
    assert.deepEqual(list("kubelet"), ["pods"]);
  });
  test("entries of older versions have no list of them", () => {
    const { run, said, root } = host({
      "kubelet/pods/.keep": "",
      "ledger/k1/prior": "type=directory\n",
      "ledger/k1/had": "pods\n",
    });
    mounts(root, "kubelet/pods");
    ok(run("dash", 'cd "$L/k1" && entry=$PWD', "set -e", 'undo_data "$ROOT/kubelet"'));
    assert.deepEqual(said(), ["umount -- kubelet/pods"]);
  });
});

test("locks on the lists of accounts that a killed program left go, those of living ones and all else stay", () => {
  const mine = `etc/passwd.${process.pid}`;
  const left = { "etc/group.4194305": "4194305\0", "etc/gshadow.4194305": "4194305", "etc/shadow.4194305": "" };
  const copy = "etc/passwd.20240131";
  const others = { [mine]: "", "etc/group.old": "", "etc/passwd.1a": "", [copy]: "root:x:0:0::/root:/bin/sh\n" };
  const { run, list } = host({ ...left, ...others });
  ok(run("dash", "sweep_account_locks"));
  assert.deepEqual(list("etc"), ["group.old", "passwd.1a", copy.slice(4), mine.slice(4)].sort());
});

test("what is learned of several paths together is what a look at each says, whatever modes and groups there are", () => {
  const { run } = host({ "etc/it": "theirs\n", "etc/folder/it": "", "etc/empty": "" });
  // Both words of a group that a directory service may give.
  const groups = `stat() { command stat "$@" | sed 's:/[^/ ]* /:/domain users /:; s/^group=.*/group=domain users/'; }`;
  const all = ["it", "empty", "folder", "folder/it", "link", "none"].map((name) => `"$ROOT/etc/${name}"`).join(" ");
  const { status, stdout } = run(
    "dash",
    groups,
    'cd "$ROOT/etc" && ln -s it link && chmod 4755 it && chmod 1777 folder',
    `for path in ${all}; do learned=; alone=$(look_path "$path"); learn_paths ${all}; [ "$alone" = "$(look_path "$path")" ] || echo "$path: $alone"; done`,
  );
  assert.deepEqual([status, stdout], [0, ""]);
  const lines = run("dash", groups, 'bulk_path "$ROOT/etc/it"').stdout.split("\n");
  const name = lines[0]?.split(" ").at(-1) ?? "";
  const [seen] = bulks.path.read(lines, [name]);
  assert.equal(seen?.["group"], "domain users");
});
