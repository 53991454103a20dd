import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { bastionSpec, hostSpec, type HostSpec } from "../../provider/ssh";
import { parseSshConfig, sshConfigFor, type SshConfigEntry } from "../../provider/ssh/ssh-config";
import { parseJump, resolveTarget, targetKey, type Target } from "../../provider/ssh/target";
import { folder } from "./ssh-server";

const home = homedir();

const cases: readonly [name: string, text: string, want: Partial<SshConfigEntry>][] = [
  ["nothing", "", {}],
  ["another host", "Host other\n User u", {}],
  ["its host", "Host web\n HostName 10.0.0.1\n User u\n Port 2222", { hostName: "10.0.0.1", user: "u", port: 2222 }],
  ["equals signs, quotes, case", 'hOsT=web\n USER = "u v"\nport=23', { user: "u v", port: 23 }],
  ["first value wins", "Host web\n User a\nHost *\n User b\n Port 5", { user: "a", port: 5 }],
  ["before any Host", "User g\nHost web\n User h", { user: "g" }],
  ["wildcards", "Host w?b db*\n User u", { user: "u" }],
  ["negation", "Host * !web\n User u", {}],
  ["negation of others", "Host * !db\n User u", { user: "u" }],
  ["Match is passed over", "Match all\n User m\nHost web\n User u", { user: "u" }],
  ["tokens of HostName", "Host web\n HostName %h.example.org", { hostName: "web.example.org" }],
  ["bad port", "Host web\n Port ssh", {}],
  [
    "identity files add up",
    "Host web\n IdentityFile ~/.ssh/a\nHost *\n IdentityFile %d/b\n IdentityFile none",
    { identityFiles: ["~/.ssh/a", "%d/b"] },
  ],
  ["jump", "Host web\n ProxyJump a@b:1, c", { proxyJump: ["a@b:1", "c"] }],
  ["no jump", "Host web\n ProxyJump none\nHost *\n ProxyJump x", { proxyJump: [] }],
  ["known hosts", "Host *\n UserKnownHostsFile ~/k1 /k2", { knownHosts: ["~/k1", "/k2"] }],
  ["no known hosts", "Host *\n UserKnownHostsFile none", { knownHosts: ["/dev/null"] }],
  ["comments", "# Host web\n#User x\nHost db # web\n User x\nHost web # the web\n User u # him", { user: "u" }],
];

for (const [name, text, want] of cases)
  test(`~/.ssh/config: ${name}`, () => {
    assert.deepEqual(parseSshConfig(text, "web"), { identityFiles: [], ...want });
  });

test("Include reads files beside the config, in order, only where it stands", () => {
  const dir = folder();
  after(dir.remove);
  mkdirSync(join(dir.path, "d"));
  writeFileSync(join(dir.path, "config"), "Host web\n Include d/*.conf\nHost other\n Include o\nHost web\n User last");
  writeFileSync(join(dir.path, "d", "1.conf"), "Port 1\nHost w*\n User one\nHost nobody\n User no");
  writeFileSync(join(dir.path, "d", "2.conf"), "Port 2\nUser two");
  writeFileSync(join(dir.path, "o"), "Host web\nHostName wrong");
  assert.deepEqual(sshConfigFor("web", dir.path), { identityFiles: [], port: 1, user: "one" });
});

test("a file that includes itself ends", () => {
  const text = "Include me\nHost web\n User u";
  assert.equal(parseSshConfig(text, "web", () => [text]).user, "u");
});

const jumps: readonly [string, ReturnType<typeof parseJump>][] = [
  ["h", { address: "h" }],
  ["u@h", { user: "u", address: "h" }],
  ["u@h:22", { user: "u", address: "h", port: 22 }],
  ["ssh://u@h:2", { user: "u", address: "h", port: 2 }],
  ["[::1]:24", { address: "::1", port: 24 }],
  ["::1", { address: "::1" }],
  ["a@b@h", { user: "a@b", address: "h" }],
];

for (const [text, want] of jumps)
  test(`ProxyJump ${text}`, () => {
    assert.deepEqual(parseJump(text), want);
  });

const config = `
Host web
  HostName 10.0.0.1
  User deploy
  Port 2222
  IdentityFile /keys/web
  ProxyJump gate
Host gate
  HostName gate.example.org
  User jump
  ProxyJump outer:24
Host loop
  ProxyJump loop
`;
const lookup = (alias: string) => parseSshConfig(config, alias);
const spec = (more: Record<string, unknown>): HostSpec => hostSpec.parse({ name: "n", address: "web", ...more });

const targets: readonly [name: string, more: Record<string, unknown>, key: string][] = [
  ["all from the config", {}, "root@outer:24 > jump@gate.example.org:22 > deploy@10.0.0.1:2222"],
  ["the spec wins", { user: "me", port: 1, bastions: [{ address: "b" }] }, "root@b:22 > me@10.0.0.1:1"],
  ["default user", { address: "10.9.9.9" }, "root@10.9.9.9:22"],
  [
    "root asked for",
    { user: "root", bastions: [{ address: "gate" }] },
    "jump@gate.example.org:22 > root@10.0.0.1:2222",
  ],
  [
    "chain, first hop first",
    { address: "x", bastions: [{ address: "a", port: 1 }, { address: "b" }] },
    "root@a:1 > root@b:22 > root@x:22",
  ],
];

for (const [name, more, key] of targets)
  test(`the way to a host: ${name}`, () => {
    assert.equal(targetKey(resolveTarget(spec(more), lookup)), key);
  });

test("a jump over itself ends", () => {
  assert.match(targetKey(resolveTarget(spec({ address: "loop" }), lookup)), /loop:22$/);
});

test("what a target is told about keys, passwords and files", () => {
  const target = resolveTarget(spec({ password: "p", knownHostsPath: "~/k", privateKeyPath: "~/id" }), lookup);
  assert.equal(target.sudoPassword, "p");
  assert.deepEqual(target.knownHosts, [join(home, "k")]);
  assert.equal(target.privateKeyPath, join(home, "id"));
  assert.deepEqual(target.identityFiles, ["/keys/web"]);
  assert.equal(target.via?.password, undefined, "a bastion does not get the host's password");
});

const SYSTEM = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];
const files: readonly [name: string, text: string, more: Record<string, unknown>, want: Partial<Target>][] = [
  [
    "none named",
    "",
    {},
    {
      identityFiles: ["id_ed25519", "id_ecdsa", "id_rsa"].map((name) => `${home}/.ssh/${name}`),
      knownHosts: [`${home}/.ssh/known_hosts`, `${home}/.ssh/known_hosts2`, ...SYSTEM],
    },
  ],
  ["those of the system stay", "UserKnownHostsFile ~/k", {}, { knownHosts: [`${home}/k`, ...SYSTEM] }],
  ["one of cluster.yaml is alone", "UserKnownHostsFile ~/k", { knownHostsPath: "/one" }, { knownHosts: ["/one"] }],
  [
    "tokens",
    "HostName real\nUser u\nPort 5\nIdentityFile ~/%n-%h-%p-%r-%d-%%-%x",
    {},
    { identityFiles: [`${home}/web-real-5-u-${home}-%-%x`] },
  ],
  [
    "tokens of what cluster.yaml says",
    "User u\nPort 5\nIdentityFile ~/%h-%p-%r\nUserKnownHostsFile /%r",
    { user: "me", port: 6 },
    { identityFiles: [`${home}/web-6-me`], knownHosts: ["/me", ...SYSTEM] },
  ],
  ["tokens without a user", "IdentityFile /%r", {}, { identityFiles: ["/root"] }],
];

for (const [name, text, more, want] of files)
  test(`files of a target: ${name}`, () => {
    const target = resolveTarget(spec(more), (alias) => parseSshConfig(text, alias));
    assert.deepEqual({ ...target, ...want }, target);
  });

test("a pinned key must look like one", () => {
  const ok = [`SHA256:${"a".repeat(43)}`, "ssh-ed25519 AAAA", "ecdsa-sha2-nistp256 AAAA me@there", "ssh-rsa AAAA=="];
  for (const hostKey of ok) assert.equal(bastionSpec.safeParse({ address: "h", hostKey }).success, true, hostKey);
  for (const hostKey of ["", "MD5:aa", "AAAA", "SHA256:short", "ssh-ed25519"])
    assert.equal(bastionSpec.safeParse({ address: "h", hostKey }).success, false, hostKey);
});
