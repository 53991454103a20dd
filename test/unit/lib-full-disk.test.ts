import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { saveKernel } from "../../resources/kubernetes/reset";
import { libHost, type LibHost } from "../harness/lib-host";

const [BEGIN, END] = ["# BEGIN kx", "# END kx"];
const HOSTS = "127.0.0.1 localhost\n";
const BLOCK = `${BEGIN}\n192.0.2.1 n1\n${END}\n`;
const NFT = 'table inet t {}\ninsert rule inet t c tcp dport 22 accept comment "kubexm 22/tcp"\n';
const calls = (name: string) => `${name} "$ROOT/etc/it" '${BEGIN}' '${END}'`;

interface Row {
  readonly name: string;
  /** What stands in the ledger entry, and in $ROOT/etc; `etc/it` has to come through. */
  readonly given: Readonly<Record<string, string>>;
  readonly call: string;
  /** What it comes to on a disk with room; undefined: it goes. */
  readonly then: string | undefined;
}

const rows: readonly Row[] = [
  { name: "undo of a block", given: { "etc/it": HOSTS + BLOCK }, call: calls("undo_block"), then: HOSTS },
  {
    name: "undo of a block in a file that was not there",
    given: { "etc/it": `${BLOCK}since\n`, "entry/no-file": "" },
    call: calls("undo_block"),
    then: "since\n",
  },
  {
    name: "undo of a block after a line without an end",
    given: { "etc/it": HOSTS + BLOCK, "entry/no-newline": "" },
    call: calls("undo_block"),
    then: HOSTS.trimEnd(),
  },
  {
    name: "a block at the end",
    given: { "etc/it": HOSTS },
    call: `${calls("put_block")} "192.0.2.1 n1$nl"`,
    then: HOSTS + BLOCK,
  },
  {
    name: "a block before all else",
    given: { "etc/it": HOSTS },
    call: `${calls("put_block")} "192.0.2.1 n1$nl" top`,
    then: BLOCK + HOSTS,
  },
  {
    name: "a block that changes",
    given: { "etc/it": `${BEGIN}\nold\n${END}\n${HOSTS}` },
    call: `${calls("put_block")} "192.0.2.1 n1$nl"`,
    then: BLOCK + HOSTS,
  },
  {
    name: "a block that changes, where the end of an earlier one is lost",
    given: { "etc/it": `${BEGIN}\nold\n${BEGIN}\nolder\n${END}\n${HOSTS}` },
    call: `${calls("put_block")} "192.0.2.1 n1$nl"`,
    then: BLOCK + HOSTS,
  },
  {
    name: "a block in place of several that were left behind, the last without an end of line",
    given: { "etc/it": `${HOSTS}${BEGIN}\na\n${END}\n${BEGIN}\nb\n${END}` },
    call: `${calls("put_block")} "192.0.2.1 n1$nl"`,
    then: HOSTS + BLOCK,
  },
  {
    name: "swap off",
    given: { "etc/it": "/dev/a none swap sw 0 0\n" },
    call: "set_swap_off",
    then: "#kubexm# /dev/a none swap sw 0 0\n",
  },
  {
    name: "swap on again",
    given: {
      "etc/it": "#kubexm# /dev/a none swap sw 0 0\n",
      "entry/fstab": "",
      "entry/units": "",
      "entry/active": "",
    },
    call: "undo_swap",
    then: "/dev/a none swap sw 0 0\n",
  },
  { name: "SELinux at boot", given: { "etc/it": "SELINUX=enforcing\n" }, call: "put_selinux_line ''", then: "" },
  {
    name: "an opening of nftables",
    given: { "etc/it": "table inet t {}" },
    call: `echo 22/tcp file input inet t c | open_nftables`,
    then: NFT,
  },
  {
    name: "an opening of nftables, closed",
    given: { "etc/it": NFT },
    call: "shut_nftables 22/tcp 'file input inet t c'",
    then: "table inet t {}\n",
  },
  {
    name: "an opening of nftables, where the file is nothing but that",
    given: { "etc/it": NFT.replace(/.*\n/, "") },
    call: "shut_nftables 22/tcp 'file input inet t c'",
    then: "",
  },
  {
    name: "a file's original",
    given: { "etc/it": "ours\n", "entry/body": "theirs\n", "entry/prior": "type=file\n" },
    call: 'restore_path "$ROOT/etc/it"',
    then: "theirs\n",
  },
  {
    name: "a unit that is set aside",
    given: { "etc/it": "[Swap]\n" },
    call: 'set_aside "$ROOT/etc/it" own && grep -qxF "[Swap]" own/it',
    then: undefined,
  },
];

/** A file may not grow beyond nothing: as on a full disk it is made, and what is written to it fails. */
const FULL = "trap '' XFSZ; ulimit -f 0";

const hosts: LibHost[] = [];
after(() => hosts.forEach(({ end }) => end()));
function host(given: Row["given"]): LibHost {
  const made = libHost(given);
  hosts.push(made);
  return made;
}

for (const shell of ["dash", "bash"])
  describe(`a full disk, as ${shell} sees it`, () => {
    for (const { name, given, call, then } of rows)
      test(`${name}: it fails, the file stays, and it goes through once there is room`, () => {
        const { run, read, list } = host(given);
        assert.notEqual(run(shell, FULL, "set -e", call).status, 0);
        assert.equal(read("etc/it"), given["etc/it"]);
        assert.deepEqual(list("etc"), ["it"]);
        const { status, stderr } = run(shell, "set -e", call);
        assert.equal(status, 0, stderr);
        assert.equal(read("etc/it"), then);
      });
    test("an original that cannot be put beside: the record stays", () => {
      const { run, list } = host({ "etc/it": "changed\n", "entry/body": "theirs\n" });
      assert.notEqual(run(shell, FULL, 'keep_beside "$ROOT/etc/it"; exit 0').status, 0);
      assert.deepEqual(list("etc"), ["it"]);
      assert.match(run(shell, 'keep_beside "$ROOT/etc/it"; exit 0').stdout, /its original is/);
      assert.deepEqual(list("etc"), ["it", "it.before-kubexm"]);
    });
    test("what a block may be that has no end is nobody's to take away", () => {
      const given = { "etc/it": `${HOSTS}${BEGIN}\n192.0.2.1 n1\nprecious\n` };
      for (const call of [`${calls("put_block")} new`, calls("undo_block")]) {
        const { run, read } = host(given);
        const { status, stderr } = run(shell, "set -e", call);
        assert.notEqual(status, 0);
        assert.match(stderr, /but no line '# END kx' after it: write that below/);
        assert.equal(read("etc/it"), given["etc/it"]);
      }
    });
    test("a state that cannot be noted is not built upon", () => {
      const { run } = host({});
      const prepare = "begin_entries k1 && prepare_entry k1 thing Owner look look_nothing undo";
      const script = `look() { kv enabled yes; :; }; look_nothing() { :; }; undo() { :; }`;
      assert.notEqual(run(shell, script, `${FULL}; ${prepare}`).status, 0);
      const { status, stderr } = run(shell, script, prepare);
      assert.equal(status, 0, stderr);
    });
    test("the list of folders that are ours stays", () => {
      const { run, read } = host({ "ledger/dirs": "/nowhere\n/etc\n" });
      assert.notEqual(run(shell, FULL, "sweep_dirs && :").status, 0);
      assert.equal(read("ledger/dirs"), "/nowhere\n/etc\n");
    });
    test("settings of the kernel that cannot be noted are not changed", () => {
      const { run } = host({});
      const save = `save() { ${saveKernel.text}\n}`;
      assert.notEqual(run(shell, FULL, save, "if save; then exit 0; else exit 1; fi").status, 0);
      assert.equal(run(shell, save, "if save; then exit 0; else exit 1; fi").status, 0);
    });
    test("a filter that ends half way", () => {
      const { run, read } = host({ "etc/it": HOSTS + BLOCK });
      const broken = 'sed() { command sed "$@" | head -c 5; return 4; }';
      assert.notEqual(run(shell, broken, "set -e", calls("undo_block")).status, 0);
      assert.equal(read("etc/it"), HOSTS + BLOCK);
    });
  });
