import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { libHost, type LibHost } from "../harness/lib-host";

/** A block as systemd writes it: older ones say the service's own properties first, newer ones last. */
type Block = (name: string, state: { active: string; since: number; reload?: string }) => string;
const head = "LoadState=loaded\nActiveState=";
const orders: Readonly<Record<string, Block>> = {
  "systemd 252": (name, { active, since, reload = "no" }) =>
    `ExecMainStartTimestampMonotonic=${since}\nLimitNOFILE=1024\nId=${name}\n${head}${active}\nUnitFileState=enabled\nNeedDaemonReload=${reload}\n`,
  "systemd 257": (name, { active, since, reload = "no" }) =>
    `Id=${name}\n${head}${active}\nUnitFileState=enabled\nNeedDaemonReload=${reload}\nExecMainStartTimestampMonotonic=${since}\nLimitNOFILE=1024\n`,
};

const hosts: LibHost[] = [];
after(() => hosts.forEach(({ end }) => end()));
function host(given: Readonly<Record<string, string>>): LibHost {
  const made = libHost(given);
  hosts.push(made);
  return made;
}

/** What systemctl was told to do, not what it was asked. */
const systemctl = `systemctl() { case $1 in show) [ ! -e "$ROOT/silent" ] && cat "$ROOT/shown" ;; is-active) ;; *) echo "$*" >>"$ROOT/told" ;; esac; }
sleep() { :; }`;

for (const [which, block] of Object.entries(orders))
  describe(`what ${which} says of units`, () => {
    const shown = [
      block("one.service", { active: "active", since: 900_000_000 }),
      block("two@a.service", { active: "inactive", since: 0 }),
      block("three.service", { active: "active", since: 100_000_000 }),
    ].join("\n");

    for (const shell of ["dash", "bash"])
      test(`is known of each, in ${shell}`, () => {
        const { run } = host({ shown });
        const ask = (name: string) => `learned_unit ${name} && printf '%s;' "$shown" || printf 'unknown;'`;
        const names = ["one.service", "two@a.service", "three.service", "ne.service", "alias.service"];
        const { stdout } = run(shell, systemctl, "learn_units one two three", ...names.map(ask));
        const said = stdout.split(";").map((text) => text.trim());
        assert.deepEqual(said, [
          ...shown.split("\n\n").map((text) => text.replace(/^Id=.*\n/m, "").trim()),
          "unknown",
          "unknown",
          "",
        ]);
      });

    const made = { "ledger/k1/made": "type=file\nwhen=50000\n" };
    const cases: readonly [what: string, since: number, told: string | undefined][] = [
      ["what others started with what we made is not started anew", 900_000_000, undefined],
      ["what was started before we made it is", 100_000_000, "restart -- one.service\n"],
    ];
    for (const [what, since, told] of cases)
      for (const learn of ["learn_units one.service", ":"])
        test(`${what}, ${learn === ":" ? "asked then" : "known before"}`, () => {
          const { run, read } = host({ shown: block("one.service", { active: "active", since }), ...made });
          const { status, stderr } = run(
            "dash",
            systemctl,
            learn,
            "set -e",
            "set_unit one.service yes yes restart 0 sum k1",
          );
          assert.equal(status, 0, stderr);
          assert.equal(read("told"), told);
          assert.equal(read("entry/applied"), "sum");
        });
  });

test("where systemd does not answer, nothing is taken for started with what it is to be", () => {
  const { run, read } = host({ shown: "", silent: "" });
  assert.notEqual(run("dash", systemctl, "set -e", "set_unit one.service any yes restart 0 sum k1").status, 0);
  assert.equal(read("entry/applied"), undefined);
});
