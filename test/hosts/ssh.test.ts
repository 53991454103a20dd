import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { type Lab, type LabHost, anyLabName, labDown, labExec, labUp } from "../../lab/hosts";
import { sh } from "../../provider/shell";
import { closeAll, connect, countConnections, hostSpec, type HostSpec } from "../../provider/ssh";
import { refusal } from "../harness/refusal";

const LAB = anyLabName();
const exec = promisify(execFile);
let lab: Lab;
const dir = mkdtempSync(join(tmpdir(), "kubexm-ssh-"));

before(async () => {
  lab = await labUp({
    name: LAB,
    keep: false,
    bastion: true,
    packages: ["fish", "csh"],
    hosts: [
      "plain",
      { name: "few", sshd: { MaxSessions: 1 } },
      { name: "crowd", sshd: { MaxStartups: "2:100:2" } },
      { name: "fish", user: "fisher", shell: "/usr/bin/fish", sudo: "password" },
      { name: "csh", user: "seller", shell: "/bin/csh", sudo: "free" },
      { name: "free", user: "deploy", sudo: "free" },
      { name: "asks", user: "deploy", sudo: "password" },
      { name: "words", login: "password" },
      { name: "tty", user: "deploy", sudo: "free" },
      { name: "nosudo", user: "deploy", sudo: "free" },
    ],
  });
});

after(async () => {
  await closeAll();
  await labDown(LAB);
  rmSync(dir, { recursive: true, force: true });
});

afterEach(closeAll);

function host(name: string): LabHost {
  const found = [...lab.hosts, ...(lab.bastion ? [lab.bastion] : [])].find((one) => one.name === name);
  return found ?? assert.fail(`no lab host ${name}`);
}

function spec(name: string, more: Partial<HostSpec> = {}): HostSpec {
  const { address, port, user, privateKeyPath, password, sudoPassword } = host(name);
  return hostSpec.parse({
    name,
    address,
    port,
    user,
    agent: false,
    knownHostsPath: lab.knownHostsPath,
    ...(privateKeyPath && { privateKeyPath }),
    ...(password && { password }),
    ...(sudoPassword && { sudoPassword }),
    ...more,
  });
}

/** A file here, as an upload wants it. */
function local(body: Buffer) {
  const sha256 = createHash("sha256").update(body).digest("hex");
  const path = join(dir, sha256);
  writeFileSync(path, body);
  return { path, bytes: body.length, sha256 };
}

const without = (from: HostSpec, key: keyof HostSpec) =>
  Object.fromEntries(Object.entries(from).filter(([name]) => name !== key)) as HostSpec;

const onHost = async (name: string, script: string) => (await labExec(host(name), script)).stdout;

const restart = "systemctl reset-failed ssh; systemctl restart ssh";

const logins = (log: string) => log.split("\n").filter((line) => line.includes("Accepted ")).length;

async function sshdLog(name: string): Promise<string> {
  return onHost(name, "journalctl -u ssh --no-pager -o cat");
}

describe("one connection", () => {
  it("serves everyone, as the host's log says", async () => {
    const before = logins(await sshdLog("plain"));
    const remotes = await Promise.all(Array.from({ length: 10 }, () => connect(spec("plain"))));
    const outputs = await Promise.all(remotes.map((remote, i) => remote.run(sh`echo ${i}`)));
    assert.equal(outputs.map(({ stdout }) => stdout.trim()).join(""), "0123456789");
    assert.equal(logins(await sshdLog("plain")) - before, 1);
  });

  it("is enough where only one session is allowed; uploads included", async () => {
    const remote = await connect(spec("few"));
    const body = local(randomBytes(9 * 1024 * 1024));
    const uploads = [1, 2].map((i) => remote.upload({ to: `/root/up${i}`, ...body }));
    const runs = Array.from({ length: 10 }, (_, i) => remote.run(sh`echo ${i}`));
    const outputs = await Promise.all(runs);
    await Promise.all(uploads);
    assert.equal(outputs.map(({ stdout }) => stdout.trim()).join(""), "0123456789");
    assert.match(await onHost("few", "sha256sum /root/up1 /root/up2"), new RegExp(`${body.sha256}[^]*${body.sha256}`));
    assert.equal(countConnections().open, 1);
  });

  it("survives that sessions are killed on the host, and says so to those who ran", async () => {
    const remote = await connect(spec("plain"));
    const work = refusal(remote.run(sh`echo on; sleep 60`), "disconnected");
    await onHost("plain", "until pgrep -x sleep; do sleep 0.1; done; pkill -f 's[s]hd: root@notty'");
    await work;
    assert.equal((await remote.run(sh`echo back`)).stdout, "back\n");
    await onHost("plain", "pkill -x sleep || true");
  });
});

/** What a login of a process of its own is told by the host about where it comes from. */
async function fromElsewhere(there: HostSpec, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const at = (path: string) => JSON.stringify(require.resolve(path));
  const script = `const { connect, closeAll } = require(${at("../../provider/ssh")});
const { sh } = require(${at("../../provider/shell")});
connect(${JSON.stringify(there)})
  .then((remote) => remote.run(sh\`echo "$SSH_CONNECTION"\`, { root: false }))
  .then(({ stdout }) => process.stdout.write(stdout))
  .finally(closeAll);`;
  return (await exec(process.execPath, ["-e", script], { env: { ...process.env, ...env } })).stdout;
}

async function withAgent(keys: readonly string[], use: (socket: string) => Promise<void>): Promise<void> {
  const socket = join(dir, `agent-${randomBytes(4).toString("hex")}`);
  const { stdout } = await exec("ssh-agent", ["-a", socket]);
  try {
    await exec("ssh-add", ["-q", ...keys], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    await use(socket);
  } finally {
    process.kill(Number(/SSH_AGENT_PID=(\d+)/.exec(stdout)?.[1]));
  }
}

describe("MaxStartups 2:100:2", () => {
  it("is passed by ten processes at once", async () => {
    const there = spec("crowd", { connectTimeout: 60 });
    const told = await Promise.all(Array.from({ length: 10 }, () => fromElsewhere(there)));
    for (const from of told) assert.match(from, / 22$/m);
  });
});

describe("login", () => {
  it("with a password", async () => {
    assert.equal((await (await connect(spec("words"))).run(sh`id -u`)).stdout, "0\n");
  });

  it("with a wrong password: one try, no secret in the message", async () => {
    const before = (await sshdLog("words")).split("Failed password").length;
    const error = await refusal(connect(spec("words", { password: "canary-1234" })), "auth");
    assert.ok(!error.message.includes("canary"));
    assert.equal((await sshdLog("words")).split("Failed password").length - before, 1);
  });

  it("where the host asks in a dialogue only", async () => {
    const config = "/etc/ssh/sshd_config.d/60-dialogue.conf";
    const only = "PasswordAuthentication no\\nPubkeyAuthentication no\\nKbdInteractiveAuthentication yes\\nUsePAM yes";
    await onHost("words", `mv /etc/ssh/sshd_config.d /etc/ssh/before; mkdir /etc/ssh/sshd_config.d`);
    try {
      await onHost("words", `printf '${only}\\nPermitRootLogin yes\\n' >${config}; ${restart}`);
      assert.equal((await (await connect(spec("words"))).run(sh`id -u`)).stdout, "0\n");
      assert.match(await sshdLog("words"), /Accepted keyboard-interactive/);
      await closeAll();
      await refusal(connect(spec("words", { password: "canary-1234" })), "auth");
    } finally {
      await onHost("words", `rm -r /etc/ssh/sshd_config.d; mv /etc/ssh/before /etc/ssh/sshd_config.d; ${restart}`);
    }
  });

  it("by what ~/.ssh/config says: another name, user, key, and the way through a bastion", async () => {
    const home = join(dir, "home");
    mkdirSync(join(home, ".ssh"), { recursive: true });
    copyFileSync(lab.knownHostsPath, join(home, ".ssh", "known_hosts"));
    const entry = (alias: string, name: string, more: string) => {
      const { address, port, user } = host(name);
      return `Host ${alias}\n HostName ${address}\n Port ${port}\n User ${user}\n IdentityFile ${lab.privateKeyPath}\n${more}`;
    };
    const config = entry("box-*", "free", " ProxyJump gate\n") + entry("gate", "bastion", "");
    writeFileSync(join(home, ".ssh", "config"), config, { mode: 0o600 });
    const there = hostSpec.parse({ name: "free", address: "box-1", agent: false });
    const from = await fromElsewhere(there, { HOME: home });
    assert.equal(from.split(" ")[0], host("bastion").address);
  });

  it("with an unknown key: what was tried is told", async () => {
    const key = join(dir, "other");
    await exec("ssh-keygen", ["-q", "-N", "", "-t", "ed25519", "-f", key]);
    const error = await refusal(connect(spec("plain", { privateKeyPath: key })), "auth");
    assert.match(error.message, new RegExp(`tried ${key}.*publickey`));
  });

  it("with a key that has a passphrase, and with the agent", async () => {
    const key = join(dir, "locked");
    writeFileSync(key, readFileSync(lab.privateKeyPath), { mode: 0o600 });
    await exec("ssh-keygen", ["-q", "-p", "-P", "", "-N", "open sesame", "-f", key]);
    await connect(spec("plain", { privateKeyPath: key, passphrase: "open sesame" }));
    await closeAll();
    await refusal(connect(spec("plain", { privateKeyPath: key, passphrase: "wrong" })), "auth");

    await withAgent([lab.privateKeyPath], async (SSH_AUTH_SOCK) => {
      const withoutKey = without(spec("plain", { agent: true }), "privateKeyPath");
      assert.match(await fromElsewhere(withoutKey, { SSH_AUTH_SOCK }), / 22$/m);
    });
  });

  it("with a password, though an agent has more keys than sshd has patience for, two of them named", async () => {
    const HOME = join(dir, "many");
    mkdirSync(join(HOME, ".ssh"), { recursive: true });
    const keys = Array.from({ length: 7 }, (_, i) => join(HOME, `key${i}`));
    for (const key of keys) await exec("ssh-keygen", ["-q", "-N", "", "-t", "ed25519", "-f", key]);
    ["id_ed25519", "id_rsa"].forEach((name, i) => copyFileSync(`${keys[i]}.pub`, join(HOME, ".ssh", `${name}.pub`)));
    await withAgent(keys, async (SSH_AUTH_SOCK) => {
      assert.match(await fromElsewhere(spec("words", { agent: true }), { HOME, SSH_AUTH_SOCK }), / 22$/m);
    });
  });
});

describe("becoming root", () => {
  for (const [name, user, more] of [
    ["free", "deploy", {}],
    ["free", "deploy", { sudoPassword: "nobody asks for" }],
    ["asks", "deploy", {}],
    ["fish", "fisher", {}],
    ["csh", "seller", {}],
  ] as const)
    it(`on ${name} as ${user} ${Object.keys(more).join(" ")}`, async () => {
      const remote = await connect(spec(name, more));
      const first = await Promise.all([1, 2, 3].map(() => remote.run(sh`id -u; cat; echo "$LC_ALL"`)));
      for (const { stdout, stderr } of first) assert.deepEqual([stdout, stderr], ["0\nC\n", ""]);
      assert.equal((await remote.run(sh`id -un`, { root: false })).stdout, `${user}\n`);
      assert.equal((await remote.run(sh`printf %s ${"a'b\\c $x 漢"}`)).stdout, "a'b\\c $x 漢");
      await remote.upload({ to: "/opt/it's \\ here", ...local(Buffer.from("root's own\n")) });
      assert.equal(await onHost(name, "stat -c '%U %a' /opt/it*; cat /opt/it*"), "root 600\nroot's own\n");
      assert.equal(logins(await sshdLog(name)) > 0, true);
    });

  it("takes one session a command once it is known how", async () => {
    for (const name of ["free", "asks"]) {
      const remote = await connect(spec(name));
      const before = countConnections().sessions;
      for (let i = 0; i < 5; i++) await remote.run(sh`:`);
      assert.equal(countConnections().sessions - before, 5, name);
    }
  });

  it("as the first thing, for an upload", async () => {
    const remote = await connect(spec("asks"));
    await remote.upload({ to: "/opt/first", ...local(Buffer.from("x")) });
    assert.equal(await onHost("asks", "cat /opt/first"), "x");
  });

  it("cancelled: the elevated command ends too", async () => {
    const abort = new AbortController();
    const remote = await connect(spec("asks"));
    await remote.run(sh`:`);
    const work = refusal(remote.run(sh`sleep 300`, { signal: abort.signal }), "cancelled");
    await onHost("asks", "until pgrep -x sleep; do sleep 0.1; done");
    abort.abort();
    await work;
    await onHost("asks", "while pgrep -x sleep; do sleep 0.1; done");
  });

  it("with a wrong password: one try, whoever asks, and the account stays open", async (t) => {
    const failures = async () =>
      Number(
        await onHost(
          "asks",
          "journalctl --no-pager -o cat | grep -c 'pam_unix(sudo:auth): authentication failure' || true",
        ),
      );
    const before = await failures();
    const remote = await connect(spec("asks", { sudoPassword: "canary-4711" }));
    const started = Date.now();
    const errors = await Promise.all([1, 2, 3].map(() => refusal(remote.run(sh`echo never`), "sudo")));
    const ms = Date.now() - started;
    for (const error of errors) {
      assert.match(error.message, /deploy@.* cannot become root: sudo refused the password/);
      assert.ok(!error.message.includes("canary"));
    }
    await refusal(remote.run(sh`echo never`), "sudo");
    assert.equal((await failures()) - before, 1);
    t.diagnostic(`refused after ${ms} ms`);
    await closeAll();
    assert.equal((await (await connect(spec("asks"))).run(sh`id -u`)).stdout, "0\n");
  });

  it("with no password where one is wanted", async () => {
    const error = await refusal((await connect(without(spec("asks"), "sudoPassword"))).run(sh`:`), "sudo");
    assert.match(error.message, /wants a password, and none is given[\s\S]*sudoPassword/);
  });

  it("where sudo wants a terminal, forbids the user, or is not there", async () => {
    await onHost("tty", "echo 'Defaults requiretty' >/etc/sudoers.d/60-tty");
    assert.match((await refusal((await connect(spec("tty"))).run(sh`:`), "sudo")).message, /terminal \(requiretty\)/);
    await closeAll();
    await onHost("tty", "rm /etc/sudoers.d/60-tty /etc/sudoers.d/50-lab; echo deploy:pw | chpasswd");
    const forbidden = await connect(spec("tty", { sudoPassword: "pw" }));
    assert.match((await refusal(forbidden.run(sh`:`), "sudo")).message, /may not become root/);
    await onHost("nosudo", "mv /usr/bin/sudo /usr/bin/not-sudo");
    assert.match((await refusal((await connect(spec("nosudo"))).run(sh`:`), "sudo")).message, /there is no sudo/);
  });

  it("leaves no password in process lists, journals and files", async () => {
    const { sudoPassword } = host("asks");
    assert.ok(sudoPassword);
    const remote = await connect(spec("asks"));
    const seen = await remote.run(
      sh`cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n'; journalctl --no-pager; grep -rs . /tmp /var/tmp; :`,
    );
    assert.ok(seen.stdout.length > 1000);
    assert.ok(!seen.stdout.includes(sudoPassword));
  });
});

describe("bastion", () => {
  it("carries all hosts, over one connection of its own", async () => {
    const { address, port, user, privateKeyPath } = host("bastion");
    const bastions = [{ address, port, user, agent: false, ...(privateKeyPath && { privateKeyPath }) }];
    const before = logins(await sshdLog("bastion"));
    const names = ["plain", "free", "words"];
    const remotes = await Promise.all(names.map((name) => connect(spec(name, { bastions }))));
    const seen = await Promise.all(remotes.map((remote) => remote.run(sh`echo "$SSH_CONNECTION"`, { root: false })));
    for (const { stdout } of seen) assert.equal(stdout.split(" ")[0], address);
    assert.equal(logins(await sshdLog("bastion")) - before, 1);
  });

  it("lost while a command runs: the command says so, and the next one goes the whole way again", async () => {
    const { address, port, user, privateKeyPath } = host("bastion");
    const bastions = [{ address, port, user, agent: false, ...(privateKeyPath && { privateKeyPath }) }];
    const remote = await connect(spec("plain", { bastions }));
    const work = refusal(remote.run(sh`sleep 60`), "disconnected");
    await onHost("plain", "until pgrep -x sleep; do sleep 0.1; done");
    await onHost("bastion", "pkill -f 's[s]hd: root'");
    await work;
    assert.equal((await remote.run(sh`echo back`)).stdout, "back\n");
    await onHost("plain", "pkill -x sleep || true");
  });
});

describe("host keys", () => {
  const known = (text: string) => {
    const path = join(dir, `known-${randomBytes(4).toString("hex")}`);
    writeFileSync(path, text);
    return path;
  };
  const own = (name: string) =>
    readFileSync(lab.knownHostsPath, "utf8")
      .split("\n")
      .find((line) => line.startsWith(`${host(name).address} `)) ?? "";

  it("changed: refused with file, line and command", async () => {
    const { address } = host("plain");
    const path = known(`# first\n${own("few").replace(/^\S+/, address)}\n`);
    const error = await refusal(connect(spec("plain", { knownHostsPath: path })), "hostkey");
    assert.match(error.message, new RegExp(`${path}:2`));
    const command = /ssh-keygen -R \S+ -f \S+/.exec(error.message)?.[0].split(" ") ?? [];
    await exec(String(command[0]), command.slice(1));
    const add = /echo '(.*?)' >>/.exec(error.message)?.[1];
    writeFileSync(path, `${add ?? ""}\n`);
    await closeAll(); // forgets the refusal
    await connect(spec("plain", { knownHostsPath: path }));
  });

  it("revoked: refused with its line, though it is known, too", async () => {
    const path = known(`${own("plain")}\n@revoked * ${own("plain").split(" ").slice(1).join(" ")}\n`);
    const error = await refusal(connect(spec("plain", { knownHostsPath: path })), "hostkey");
    assert.match(error.message, new RegExp(`is revoked at ${path}:2`));
  });

  it("of a type that is not our first choice, in a hashed file made by ssh-keygen", async () => {
    await onHost(
      "plain",
      `test -e /etc/ssh/ssh_host_rsa_key || ssh-keygen -q -t rsa -N '' -f /etc/ssh/ssh_host_rsa_key; ${restart}`,
    );
    const rsa = (await onHost("plain", "cat /etc/ssh/ssh_host_rsa_key.pub")).split(" ").slice(0, 2).join(" ");
    const path = known(`${host("plain").address} ${rsa}\n`);
    await exec("ssh-keygen", ["-q", "-H", "-f", path]);
    assert.match(readFileSync(path, "utf8"), /^\|1\|/);
    await connect(spec("plain", { knownHostsPath: path }));
  });

  const TYPES = ["ed25519", "ecdsa", "rsa"];

  /** The file of a new authority's key, and a known_hosts that trusts it. */
  async function newAuthority(type: string) {
    const key = join(dir, `ca-${randomBytes(4).toString("hex")}`);
    await exec("ssh-keygen", ["-q", "-N", "", "-t", type, "-f", key]);
    return { key, trusted: known(`@cert-authority * ${readFileSync(`${key}.pub`, "utf8")}`) };
  }

  /** A host that has one key only, with a certificate that ssh-keygen makes with these options. */
  async function certified(type: string, options: readonly string[], work: () => Promise<unknown>): Promise<void> {
    const key = `/etc/ssh/ssh_host_${type}_key`;
    const pub = join(dir, "signed.pub");
    await onHost("plain", `test -e ${key} || ssh-keygen -q -t ${type} -N '' -f ${key}`);
    writeFileSync(pub, await onHost("plain", `cat ${key}.pub`));
    await exec("ssh-keygen", ["-q", "-h", "-I", "id", ...options, pub]);
    const cert = readFileSync(join(dir, "signed-cert.pub"), "utf8").trim();
    const only = `HostKey ${key}\nHostCertificate ${key}-cert.pub`;
    const config = "/etc/ssh/sshd_config.d/60-cert.conf";
    await onHost("plain", `echo '${cert}' >${key}-cert.pub; printf '${only}\n' >${config}; ${restart}`);
    try {
      await work();
    } finally {
      await onHost("plain", `rm -f ${config}; ${restart}`);
    }
  }

  for (const type of TYPES)
    for (const authority of TYPES)
      it(`certificate of an ${type} key, signed by an ${authority} authority`, async () => {
        const { key, trusted } = await newAuthority(authority);
        await certified(type, ["-s", key, "-n", host("plain").address, "-V", "-1h:+1h"], async () => {
          const remote = await connect(spec("plain", { knownHostsPath: trusted }));
          assert.equal((await remote.run(sh`echo certified`)).stdout, "certified\n");
        });
      });

  const faults: readonly [what: string, as: { stranger?: true; name?: string; valid?: string }, says: RegExp][] = [
    ["by an unknown authority", { stranger: true }, /no @cert-authority line for it/],
    ["for another name", { name: "other.example.org" }, /for other\.example\.org, not for/],
    ["that has expired", { valid: "-2h:-1h" }, /was valid until/],
  ];

  for (const type of TYPES)
    for (const [what, { stranger, name, valid = "-1h:+1h" }, says] of faults)
      it(`certificate of an ${type} key ${what}: refused`, async () => {
        const { key, trusted } = await newAuthority("ed25519");
        const signer = stranger ? (await newAuthority("ed25519")).key : key;
        await certified(type, ["-s", signer, "-n", name ?? host("plain").address, "-V", valid], async () => {
          const error = await refusal(connect(spec("plain", { knownHostsPath: trusted })), "hostkey");
          assert.match(error.message, says);
        });
      });
});
