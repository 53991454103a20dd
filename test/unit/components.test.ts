import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { z } from "zod";
import type { Definition } from "../../provider/definition";
import { parseFacts, type Facts } from "../../provider/facts";
import type { Step } from "../../provider/step";
import { unit } from "../../provider/steps";
import {
  Chrony,
  Firewall,
  Hostname,
  Kernel,
  Limits,
  Packages,
  Resolver,
  SELinux,
  Swap,
  System,
  Timezone,
} from "../../resources";
import { fakeHost } from "../harness/fake-host";
import { raw, walk, type StepCase } from "../harness/step-cases";

const debian = parseFacts('ID=debian\nVERSION_ID="12"\n@virtualisation=kvm');
const rocky = (version: string) => parseFacts(`ID=rocky\nVERSION_ID="${version}"\n@virtualisation=kvm`);

function stepsOf<A extends z.ZodObject>(definition: Definition<A>, args: z.input<A>, facts: Facts = debian): Step[] {
  return definition.steps(definition.args.parse(args), facts).flat();
}

interface FakeCase extends Omit<StepCase, "drifts"> {
  files: Readonly<Record<string, string>>;
  programs: Readonly<Record<string, string>>;
  drifts?: StepCase["drifts"];
  /** What a fake program must have been asked. */
  calls?: readonly string[];
}

const getenforce = 'cat "$ROOT/mode"';
const setenforce = 'case $1 in 1) echo Enforcing ;; 0) echo Permissive ;; esac >"$ROOT/mode"';
const selinuxHost = (mode: string, boot: string) => ({
  files: { mode: `${mode}\n`, "etc/selinux/config": `# a comment\nSELINUX=${boot}\nSELINUXTYPE=targeted\n` },
  programs: { getenforce, setenforce },
});
const selinuxNow = (mode: string, boot: string) =>
  `test "$(getenforce)" = ${mode} && grep -qx SELINUX=${boot} /etc/selinux/config`;

/** Keeps ports and sources of zones as files LAYER.ZONE, in the words and the form of firewall-cmd. */
const firewallCmd = `
layer=now zone=public
for word; do case $word in --permanent) layer=later ;; --zone=*) zone=\${word#*=} ;; esac; done
for word; do
  case $word in
    --get-default-zone) echo public ;;
    --list-all-zones)
      for zone in public internal dmz drop trusted; do
        case $zone-$layer in public-now) echo "public (default, active)" ;; internal-now) echo "internal (active)" ;; *) echo "$zone" ;; esac
        echo "  target: default"
        case $zone-$layer in public-now) echo "  interfaces: eth0" ;; internal-now) echo "  interfaces: eth1" ;; *) echo "  interfaces: " ;; esac
        echo "  sources: $(grep -s / "$ROOT/fw/$layer.$zone" | sed -n 's/^source //p' | tr '\\n' ' ')"
        echo "  ports: $(sed -n 's/^port //p' "$ROOT/fw/$layer.$zone" 2>/dev/null | tr '\\n' ' ')"
        printf '  rich rules: \\n\\trule family="ipv4" source address="192.0.2.0/24" accept\\n\\n'
      done ;;
    --add-*) kind=\${word#--add-} && echo "\${kind%%=*} \${kind#*=}" >>"$ROOT/fw/$layer.$zone" ;;
    --remove-*)
      kind=\${word#--remove-}
      grep -qx "\${kind%%=*} \${kind#*=}" "$ROOT/fw/$layer.$zone" || exit 1
      grep -vx "\${kind%%=*} \${kind#*=}" "$ROOT/fw/$layer.$zone" >"$ROOT/fw/new"; mv "$ROOT/fw/new" "$ROOT/fw/$layer.$zone" ;;
  esac
done`;
const firewalldOnly = 'case "$*" in "is-active -q firewalld"*) exit 0 ;; is-active*) exit 3 ;; esac';
const firewalldFiles = {
  "usr/lib/systemd/system/firewalld.service": "",
  "fw/now.public": "port 22/tcp\nport 30000-32767/tcp\n",
  "fw/later.public": "port 22/tcp\n",
  "fw/now.internal": "",
  "fw/later.internal": "",
  // Bound by where packets come from: a part of the network, and those who are to be kept out.
  "fw/now.dmz": "source 192.0.2.0/24\n",
  "fw/later.dmz": "source 192.0.2.0/24\n",
  "fw/now.drop": "source 198.51.100.7/32\n",
  "fw/later.drop": "source 198.51.100.7/32\n",
  "fw/now.trusted": "",
  "fw/later.trusted": "",
};
const zones = "firewall-cmd --list-all-zones";

/** Keeps the names of what is installed in a file; old-tool has become new-tool, which still provides the old name. */
const rpm = `
form= by=name names=
while [ $# -gt 0 ]; do
  case $1 in --qf) form=$2 && shift ;; --whatprovides) by=provides ;; -qa) names=$(cat "$ROOT/etc/rpms") ;; -*) ;; *) names="$names $1" ;; esac
  shift
done
missing=0
for name in $names; do
  own=$name
  case $by-$name in provides-old-tool) own=new-tool ;; esac
  if ! grep -qx "$own" "$ROOT/etc/rpms"; then
    missing=$((missing + 1))
    if [ $by = provides ]; then echo "no package provides $name"; else echo "package $name is not installed"; fi
    continue
  fi
  printf "$(printf '%s' "$form" | sed "s/%{NAME}/$own/; s/%{VERSION}/1.2/; s/%{RELEASE}/3/")"
done
exit $missing`;
/** Installs by either name, and removes by a package's own name only, as yum does. */
const dnf = `
for word; do
  case $word in
    install | remove) verb=$word ;;
    -*) ;;
    *) case $verb in
      install) if [ $word = old-tool ]; then word=new-tool; fi; echo $word >>"$ROOT/etc/rpms" ;;
      remove) grep -qx $word "$ROOT/etc/rpms" || exit 1; grep -vx $word "$ROOT/etc/rpms" >"$ROOT/new"; mv "$ROOT/new" "$ROOT/etc/rpms" ;;
    esac ;;
  esac
done`;

const cases: readonly FakeCase[] = [
  {
    name: "packages: one that has another name here is found by what it provides, and goes by its own name",
    files: { "etc/rpms": "bash\nrpm\n", "etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n" },
    programs: { rpm, dnf },
    steps: stepsOf(Packages.definition, { rpms: ["bash", "old-tool", "socat"] }, rocky("9.3")),
    holds: "grep -qx new-tool /etc/rpms && grep -qx socat /etc/rpms",
    drifts: [{ by: "dnf remove new-tool", step: "package old-tool" }],
    then: {
      steps: stepsOf(Packages.definition, { rpms: ["bash", "socat"] }, rocky("9.3")),
      holds: "! grep -qx new-tool /etc/rpms && grep -qx socat /etc/rpms",
    },
  },
  {
    name: "SELinux: enforcing becomes permissive now and at boot, by the default",
    ...selinuxHost("Enforcing", "enforcing"),
    steps: stepsOf(SELinux.definition, {}),
    holds: selinuxNow("Permissive", "permissive"),
    drifts: [
      { by: "setenforce 1", step: "selinux" },
      { by: "sed -i s/SELINUX=permissive/SELINUX=enforcing/ /etc/selinux/config", step: "selinux" },
    ],
    then: { steps: stepsOf(SELinux.definition, { mode: "disabled" }), holds: selinuxNow("Permissive", "disabled") },
  },
  {
    name: "SELinux: permissive becomes enforcing",
    ...selinuxHost("Permissive", "disabled"),
    steps: stepsOf(SELinux.definition, { mode: "enforcing" }),
    holds: selinuxNow("Enforcing", "enforcing"),
  },
  {
    name: "SELinux: a configuration without the line gets it, and loses it again",
    files: { mode: "Enforcing\n", "etc/selinux/config": "SELINUXTYPE=targeted\n" },
    programs: { getenforce, setenforce },
    steps: stepsOf(SELinux.definition, {}),
    holds: selinuxNow("Permissive", "permissive"),
  },
  {
    name: "firewalld: ports and networks in every zone with an interface or sources; what was open stays open",
    files: firewalldFiles,
    programs: { "firewall-cmd": firewallCmd, systemctl: firewalldOnly },
    steps: stepsOf(
      Firewall.definition,
      { ports: ["22/tcp", "6443/tcp", "30000-32767/tcp"], networks: ["10.244.0.0/16"] },
      rocky("9.3"),
    ),
    holds: `${zones} | grep -c 'ports:.* 6443/tcp' | grep -qx 3 && ${zones} --permanent | grep -c 'ports:.*6443/tcp' | grep -qx 3 && ${zones} --permanent | grep -q 'sources: 10.244.0.0/16'`,
    drifts: [
      { by: "firewall-cmd --zone=internal --remove-port=6443/tcp", step: "opening 6443/tcp" },
      { by: "firewall-cmd --zone=dmz --remove-port=6443/tcp", step: "opening 6443/tcp" },
      { by: "firewall-cmd --permanent --zone=public --remove-port=22/tcp", step: "opening 22/tcp" },
      { by: "firewall-cmd --zone=trusted --remove-source=10.244.0.0/16", step: "opening 10.244.0.0/16" },
    ],
    then: {
      steps: stepsOf(Firewall.definition, { ports: ["22/tcp"] }, rocky("9.3")),
      holds: `! ${zones} | grep -q 6443 && ${zones} | grep -q 30000-32767`,
    },
  },
  {
    name: "firewalld: switched off and on again",
    files: { "fw/unit": "enabled active\n" },
    programs: {
      systemctl: `read -r enabled active <"$ROOT/fw/unit"
case "$*" in
  "is-active -q firewalld"*) [ $active = active ]; exit ;;
  is-active*) exit 3 ;;
  show*firewalld*) printf 'LoadState=loaded\\nUnitFileState=%s\\nActiveState=%s\\n' $enabled $active ;;
  show*) printf 'LoadState=not-found\\n' ;;
  "disable"*) enabled=disabled ;;
  enable*) enabled=enabled ;;
  stop*) active=inactive ;;
  start*) active=active ;;
esac
echo $enabled $active >"$ROOT/fw/unit"`,
      "firewall-cmd": firewallCmd,
    },
    steps: stepsOf(Firewall.definition, { mode: "disable", ports: ["6443/tcp"] }, rocky("9.3")),
    holds: "! systemctl is-active -q firewalld",
    drifts: [{ by: "systemctl start -- firewalld.service", step: "unit firewalld.service" }],
  },
  ...(
    [
      [
        "systemd-resolved",
        "../run/systemd/resolve/stub-resolv.conf",
        "/etc/systemd/resolved.conf.d/kubexm.conf",
        "DNS=192.0.2.53 2001:db8::53",
        "systemctl try-restart systemd-resolved",
      ],
      [
        "NetworkManager",
        "../run/NetworkManager/resolv.conf",
        "/etc/NetworkManager/conf.d/kubexm-dns.conf",
        "servers=192.0.2.53,2001:db8::53,198.51.100.1",
        "systemctl reload NetworkManager",
      ],
      [
        "resolvconf",
        "../run/resolvconf/resolv.conf",
        "/etc/resolvconf/resolv.conf.d/head",
        "nameserver 2001:db8::53",
        "resolvconf -u",
      ],
    ] as const
  ).map(([ruler, link, place, line, call]): FakeCase => ({
    name: `resolver: ruled by ${ruler}`,
    files: {
      [link.slice(3)]: "nameserver 198.51.100.1\n",
      "etc/resolvconf/resolv.conf.d/head": "# head",
      "bin/prepare": "",
    },
    programs: { systemctl: "exit 0", resolvconf: "exit 0" },
    given: `ln -s ${link} /etc/resolv.conf`,
    steps: stepsOf(Resolver.definition, { servers: ["192.0.2.53", "2001:db8::53"] }),
    holds: `grep -qxF '${line}' ${place}`,
    drifts: [{ by: `sed -i /2001:db8/d ${place}`, step: "resolver" }],
    then: {
      steps: stepsOf(Resolver.definition, { servers: ["192.0.2.54"] }),
      holds: `grep -q 192.0.2.54 ${place} && ! grep -q 192.0.2.53 ${place}`,
    },
    calls: [call],
  })),
  {
    name: "resolver: openresolv, told by the head of the file",
    files: {
      "etc/resolv.conf": "# Generated by resolvconf\nnameserver 198.51.100.1\n",
      "etc/resolvconf.conf": "resolv_conf=/etc/resolv.conf\n",
    },
    programs: { resolvconf: "exit 0" },
    steps: stepsOf(Resolver.definition, { servers: ["192.0.2.53"] }),
    holds: "(. /etc/resolvconf.conf && test \"$name_servers\" = '192.0.2.53 ')",
    calls: ["resolvconf -u"],
  },
  {
    name: "limits: a systemd that allows too few files",
    files: {},
    programs: {
      systemctl: `case "$*" in
show*) if [ -e "$ROOT/reread" ]; then echo DefaultLimitNOFILE=524288; else echo DefaultLimitNOFILE=4096; fi ;;
daemon-reexec) rm -f "$ROOT/reread"; [ ! -e "$ROOT/etc/systemd/system.conf.d/50-kubexm.conf" ] || : >"$ROOT/reread" ;;
esac`,
    },
    steps: stepsOf(Limits.definition, {}),
    holds: "grep -qx DefaultLimitNOFILE=1024:524288 /etc/systemd/system.conf.d/50-kubexm.conf",
    drifts: [{ by: "rm /etc/systemd/system.conf.d/50-kubexm.conf", step: "limit nofile" }],
  },
  ...[
    ["told by systemd together with a unit", "$most"],
    ["services that are told otherwise are not what counts", "1024"],
  ].map(([what, told]): FakeCase => ({
    name: `limits: ${what}`,
    files: {},
    programs: {
      systemctl: `if [ -e "$ROOT/reread" ]; then most=524288; else most=4096; fi
case "$*" in
"show -p Id,"*" -- own.service rescue.service")
  printf 'LimitNOFILE=600000\\nId=own.service\\nLoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n\\n'
  printf 'LimitNOFILE=%s\\nId=rescue.service\\nLoadState=loaded\\nActiveState=inactive\\nUnitFileState=static\\n' "${told}" ;;
"show -p DefaultLimitNOFILE") echo "DefaultLimitNOFILE=$most" ;;
show*) printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n' ;;
daemon-reexec) rm -f "$ROOT/reread"; [ ! -e "$ROOT/etc/systemd/system.conf.d/50-kubexm.conf" ] || : >"$ROOT/reread" ;;
esac`,
    },
    steps: [unit("own.service", { enabled: true, running: true }), ...stepsOf(Limits.definition, {})],
    holds: "grep -qx DefaultLimitNOFILE=1024:524288 /etc/systemd/system.conf.d/50-kubexm.conf",
    drifts: [{ by: "rm /etc/systemd/system.conf.d/50-kubexm.conf", step: "limit nofile" }],
  })),
  {
    name: "kernel: modules loaded before their parameters are set, parameters that nobody else sees",
    files: {
      "proc/sys/vm/overcommit_memory": "0\n",
      "proc/sys/kernel/panic": "0\n",
      "proc/sys/kernel/osrelease": "6.1\n",
      "lib/modules/here": "",
    },
    programs: {
      modprobe: `case "$*" in
-r*) rm -r "$ROOT/proc/sys/net/bridge" "$ROOT/sys/module/$3" ;;
*) mkdir -p "$ROOT/proc/sys/net/bridge" "$ROOT/sys/module/$2" && echo 0 >"$ROOT/proc/sys/net/bridge/bridge-nf-call-iptables" ;;
esac`,
    },
    given: "mkdir -p /lib/modules/6.1 && : >/lib/modules/6.1/modules.builtin",
    steps: stepsOf(Kernel.definition, {
      modules: ["br_netfilter"],
      sysctl: { "net.bridge.bridge-nf-call-iptables": 1, "vm.overcommit_memory": 1, "kernel.panic": 10 },
    }),
    holds:
      "grep -qx 1 /proc/sys/net/bridge/bridge-nf-call-iptables && grep -qx 1 /proc/sys/vm/overcommit_memory && grep -qx 10 /proc/sys/kernel/panic",
    drifts: [{ by: "echo 0 >/proc/sys/vm/overcommit_memory", step: "sysctl vm.overcommit_memory" }],
  },
];

const listing =
  "cd /etc && find . | sort && find . -type f | sort | xargs -r sha256sum && find /proc/sys -type f | sort | xargs -r sha256sum";

describe("components against fake programs, for what no lab host has", () => {
  for (const { files, programs, calls = [], given, drifts = [], ...row } of cases) {
    test(row.name, async () => {
      const fake = fakeHost(files, programs);
      try {
        if (given !== undefined) await fake.remote.run(raw(given));
        const state = () => fake.remote.run(raw(`${listing}; cat /run/../mode /run/../fw/* 2>/dev/null; :`));
        const before = (await state()).stdout;
        await walk(fake.remote, { ...row, drifts });
        assert.equal((await state()).stdout, before, "everything is as it was");
        for (const call of calls) assert.ok(fake.calls().includes(call), `${call} in\n${fake.calls().join("\n")}`);
      } finally {
        fake.end();
      }
    });
  }
});

const ids = (steps: readonly Step[]) => steps.map(({ id }) => id);
describe("components: what follows from the host", () => {
  const rows: readonly [string, readonly string[], readonly string[]][] = [
    [
      "Debian's zone has a file of its own",
      ids(stepsOf(Timezone.definition, { zone: "Asia/Shanghai" })),
      ["package tzdata", "path /etc/localtime", "path /etc/timezone"],
    ],
    [
      "Rocky's has not",
      ids(stepsOf(Timezone.definition, { zone: "Asia/Shanghai" }, rocky("9.3"))),
      ["package tzdata", "path /etc/localtime"],
    ],
    [
      "packages of Debian",
      ids(stepsOf(Packages.definition, { debs: ["a", "b", "a"], rpms: ["c"] })),
      ["package a", "package b"],
    ],
    [
      "packages of Rocky 8, where one has another name",
      ids(stepsOf(Packages.definition, { debs: ["a"], rpms: ["ebtables", "c=1.2-3"] }, rocky("8.9"))),
      ["package iptables-ebtables", "package c"],
    ],
    [
      "and of Rocky 9",
      ids(stepsOf(Packages.definition, { rpms: ["ebtables"] }, rocky("9.3"))),
      ["package iptables-nft"],
    ],
    [
      "a container's kernel: its network only",
      ids(
        stepsOf(
          Kernel.definition,
          { modules: ["overlay"], sysctl: { "net.ipv4.ip_forward": 1, "kernel.panic": 10 } },
          { ...debian, virtualisation: "docker" },
        ),
      ),
      [
        "path /etc/modules-load.d/kubexm.conf",
        "module overlay",
        "path /etc/sysctl.d/99-kubexm-cri.conf",
        "sysctl net.ipv4.ip_forward",
      ],
    ],
    [
      "a firewall that is switched off, and openings for the one that is not",
      ids(stepsOf(Firewall.definition, { mode: "disable", ports: ["6443/tcp"] })),
      ["unit firewalld.service", "ufw", "opening 6443/tcp"],
    ],
    [
      "chrony without servers keeps the distribution's configuration",
      ids(stepsOf(Chrony.definition, { servers: [] })),
      ["package chrony", "unit chrony.service"],
    ],
    [
      "a system is the sum of its parts",
      ids(stepsOf(System.definition, { hostname: "n1", timezone: "UTC", modules: [], sysctl: {} })),
      ids([
        ...stepsOf(Hostname.definition, { name: "n1" }),
        ...stepsOf(Timezone.definition, { zone: "UTC" }),
        ...stepsOf(SELinux.definition, {}),
        ...stepsOf(Swap.definition, {}),
        ...stepsOf(Kernel.definition, { modules: [], sysctl: {} }),
        ...stepsOf(Limits.definition, {}),
      ]),
    ],
  ];
  for (const [name, found, wanted] of rows) test(name, () => assert.deepEqual(found, wanted));

  const refused: readonly [string, () => unknown, RegExp][] = [
    ["a port without its protocol", () => stepsOf(Firewall.definition, { ports: ["6443"] }), /6443\/tcp/],
    ["a name for a DNS server", () => stepsOf(Resolver.definition, { servers: ["dns.example.com"] }), /Invalid|IP/],
    ["a host name with a space", () => stepsOf(Hostname.definition, { name: "a b" }), /hostname/],
    ["a zone that climbs", () => stepsOf(Timezone.definition, { zone: "../../etc/passwd" }), /Asia\/Shanghai/],
  ];
  for (const [name, build, message] of refused) test(`refused: ${name}`, () => assert.throws(build, message));
});
