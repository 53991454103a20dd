import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as tcpConnect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ssh2, { type AuthContext, type Connection, type ParsedKey, type ServerChannel } from "ssh2";
import { makeSshKey } from "../../lab/key";
import { hostSpec, type HostSpec } from "../../provider/ssh";

export interface KeyPair {
  private: string;
  /** Type and base64, as in known_hosts. */
  public: string;
}

export function newKey(): KeyPair {
  const { privateKey, publicKey } = makeSshKey("test");
  return { private: privateKey, public: publicKey.split(" ").slice(0, 2).join(" ") };
}

export function folder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "kubexm-ssh-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export interface ServerOptions {
  hostKey?: ParsedKey;
  /** Decides each login attempt; default: the user key is good. */
  auth?: (context: AuthContext) => void;
  /** Sessions open at once; more are refused as OpenSSH does. */
  maxSessions?: number;
  /** Runs instead of a real shell. */
  exec?: (channel: ServerChannel, command: string) => void;
  onSession?: (count: number) => void;
  /** Makes the way to another host; default: a real one. */
  forward?: TcpIp;
}

type TcpIp = (accept: () => ServerChannel, reject: () => void, info: { destPort: number; destIP: string }) => void;

const realForward: TcpIp = (accept, reject, info) => {
  const out = tcpConnect(info.destPort, info.destIP);
  out.once("error", reject);
  out.once("connect", () => {
    const stream = accept();
    stream.pipe(out).pipe(stream);
    stream.on("error", () => out.destroy());
    stream.on("close", () => out.destroy());
  });
};

export interface TestServer {
  port: number;
  host: KeyPair;
  user: KeyPair;
  tried: string[];
  commands: string[];
  logins: () => number;
  connections: Set<Connection>;
  spec: (more?: Partial<HostSpec>) => HostSpec;
  stop: () => void;
}

/** The command in a real shell, on the streams of the channel. */
export function realShell(channel: ServerChannel, command: string): void {
  const child = spawn("/bin/sh", ["-c", command], { stdio: "pipe" });
  child.stdin.on("error", () => undefined);
  channel.pipe(child.stdin);
  child.stdout.on("data", (chunk) => channel.write(chunk));
  child.stderr.on("data", (chunk) => channel.stderr.write(chunk));
  const outputs = Promise.all([once(child.stdout, "close"), once(child.stderr, "close")]);
  child.on("exit", (code, signal) => {
    if (code === null) channel.exit(String(signal).replace("SIG", ""), false, "");
    else channel.exit(code);
    void outputs.then(() => channel.end());
  });
}

function describeAttempt(context: AuthContext): string {
  if (context.method !== "publickey") return context.method;
  return `publickey ${context.signature ? "signed" : "offered"} ${context.key.data.toString("base64").slice(-12)}`;
}

function keyIs(user: KeyPair) {
  const key = ssh2.utils.parseKey(user.public) as ParsedKey;
  return (context: AuthContext) =>
    context.method === "publickey" && context.key.data.equals(key.getPublicSSH())
      ? context.accept()
      : context.reject(["publickey"]);
}

/** An ssh2 server on a free loopback port that runs commands in a real shell as the user of the tests. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const host = newKey();
  const user = newKey();
  const dir = folder();
  const tried: string[] = [];
  const commands: string[] = [];
  const connections = new Set<Connection>();
  let logins = 0;
  const auth = options.auth ?? keyIs(user);
  const server = new ssh2.Server({ hostKeys: [{ key: (options.hostKey ?? host.private) as string }] }, (connection) => {
    connections.add(connection);
    let open = 0;
    connection.on("error", () => undefined);
    connection.on("close", () => connections.delete(connection));
    connection.on("authentication", (context) => {
      tried.push(describeAttempt(context));
      auth(context);
    });
    connection.on("ready", () => {
      logins++;
    });
    connection.on("tcpip", options.forward ?? realForward);
    connection.on("session", (accept, reject) => {
      options.onSession?.(open + 1);
      if (open >= (options.maxSessions ?? Infinity)) return reject(); // with reason 2, as OpenSSH does
      open++;
      const session = accept();
      session.on("close", () => open--);
      session.on("exec", (acceptExec, _reject, info) => {
        commands.push(info.command);
        const channel = acceptExec();
        channel.on("error", () => undefined);
        (options.exec ?? realShell)(channel, info.command);
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const knownHostsPath = join(dir.path, "known_hosts");
  writeFileSync(knownHostsPath, `[127.0.0.1]:${port} ${host.public}\n`);
  return {
    port,
    host,
    user,
    tried,
    commands,
    logins: () => logins,
    connections,
    spec: (more = {}) =>
      hostSpec.parse({
        name: "m1",
        address: "127.0.0.1",
        port,
        user: "root",
        privateKey: user.private,
        agent: false,
        knownHostsPath,
        connectTimeout: 5,
        ...more,
      }),
    stop: () => {
      for (const connection of connections) connection.end();
      server.close();
      dir.remove();
    },
  };
}

/** A TCP server that accepts and says what it is told to, or nothing. */
export async function startMute(onSocket: (socket: Socket, count: number) => void = () => undefined) {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onSocket(socket, ++count);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    count: () => count,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
