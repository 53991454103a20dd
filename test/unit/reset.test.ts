import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { cleanKernel, saveKernel } from "../../resources/kubernetes/reset";
import { libHost } from "../harness/lib-host";

const HEAD = "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n";
const SERVERS = `${HEAD}TCP  0A600001:01BB rr\n  -> AC1E000B:192B      Masq    1      0          0\n`;
const own = (text: string) => text.replaceAll("/proc/net/ip_vs", '"$ROOT/ip_vs"');
/** Nothing of this machine is touched, whatever it has. */
const ADM = 'ipvsadm() { echo "ipvsadm $*" >>"$ROOT/said"; }; ipset() { :; }';
const NO_ADM = `${ADM}; command() { [ "$2" != ipvsadm ]; }`;
const SETS = `${ADM}; ipset() { case $1 in list) echo THEIRS; echo KUBE-CLUSTER-IP ;; *) echo "ipset $*" >>"$ROOT/said" ;; esac; }`;

interface Row {
  readonly name: string;
  readonly before?: string;
  readonly after?: string;
  readonly programs: string;
  readonly said: readonly string[];
  readonly told?: RegExp;
}

const rows: readonly Row[] = [
  { name: "a kernel without virtual servers", programs: ADM, said: [""] },
  { name: "a table that is empty", before: HEAD, after: HEAD, programs: ADM, said: [""] },
  { name: "those of kube-proxy go", before: HEAD, after: SERVERS, programs: ADM, said: ["ipvsadm --clear"] },
  {
    name: "none can be taken for others'",
    before: SERVERS,
    after: SERVERS,
    programs: ADM,
    said: [""],
    told: /ipvsadm -Ln/,
  },
  { name: "without the program", after: SERVERS, programs: NO_ADM, said: [""], told: /ipvsadm -Ln/ },
  { name: "sets of kube-proxy go, others stay", programs: SETS, said: ["ipset destroy KUBE-CLUSTER-IP"] },
];

describe("what kube-proxy leaves in its mode ipvs", () => {
  for (const shell of ["dash", "bash"])
    for (const { name, before, after, programs, said, told } of rows)
      test(`${name}, by ${shell}`, () => {
        const host = libHost({ ...(before !== undefined && { ip_vs: before }) });
        try {
          const save = `save() { ${own(saveKernel.text)}\n}`;
          assert.equal(host.run(shell, save, "set -e", "save").status, 0);
          if (after !== undefined) writeFileSync(join(host.root, "ip_vs"), after);
          const { status, stdout, stderr } = host.run(shell, programs, own(cleanKernel.text), "set -e", "clean_ipvs");
          assert.equal(status, 0, stderr);
          assert.deepEqual(host.said(), [...said]);
          assert.match(stdout, told ?? /^$/);
        } finally {
          host.end();
        }
      });
});
