import { once } from "node:events";
import net, { type Socket } from "node:net";
import { parseArgs } from "node:util";
import { UsageError, UserError, codeOf, messageOf, understood } from "../toolchain/errors.js";
import { owner } from "../toolchain/owner.js";
import { writeService } from "./service-record.js";

const PORT = 6443;
const PATIENCE_MS = 1000;

/** A connection to the first of these that takes one, beginning anywhere among them. */
async function connectAny(hosts: readonly string[], begin: number): Promise<Socket | undefined> {
  for (const i of hosts.keys()) {
    const socket = net.connect(PORT, hosts[(begin + i) % hosts.length] ?? "");
    const late = setTimeout(() => socket.destroy(new Error("late")), PATIENCE_MS);
    try {
      await once(socket, "connect");
      return socket;
    } catch {
      socket.destroy();
    } finally {
      clearTimeout(late);
    }
  }
  return undefined;
}

function join(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one);
  const end = () => {
    one.destroy();
    other.destroy();
  };
  for (const socket of [one, other]) socket.on("error", end).on("close", end);
}

/** The port is the one that cluster.yaml's default names: there is no other to go to. */
function whyNot(error: unknown): string {
  if (codeOf(error) === "EADDRINUSE")
    return `a process of this machine has port ${PORT} there, or of all addresses (ss -ltnp 'sport = :${PORT}' tells which): stop it, or let it listen on its own address only`;
  if (codeOf(error) === "EADDRNOTAVAIL") return "it is not an address of this machine";
  return messageOf(error);
}

/** A load balancer of one's own, as cluster.yaml's externalLoadBalancer: external has it: TCP, to API servers that take connections. */
export async function startBalancer(address: string, hosts: readonly string[]): Promise<{ stop: () => Promise<void> }> {
  const open = new Set<Socket>();
  let turn = 0;
  const server = net.createServer((client) => {
    open.add(client);
    client.on("error", () => client.destroy()).on("close", () => open.delete(client));
    void connectAny(hosts, turn++).then((target) => {
      if (target === undefined || client.destroyed) {
        target?.destroy();
        client.destroy();
      } else join(client, target);
    });
  });
  server.listen(PORT, address);
  await once(server, "listening").catch((error: unknown) => {
    throw new UserError(`the lab's load balancer cannot listen on ${address}:${PORT}: ${whyNot(error)}`);
  });
  return {
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** `kubexm lab balancer serve --address IP --to A,B` until a signal comes. */
export async function balancerCommand(argv: readonly string[]): Promise<number> {
  const text = { type: "string" } as const;
  const options = { address: text, to: text, record: text };
  const misused = () => new UsageError("usage: kubexm lab balancer serve --address IP --to HOST,HOST");
  const { values, positionals } = understood(
    () => parseArgs({ args: [...argv], allowPositionals: true, options }),
    misused,
  );
  const { address, to, record } = values;
  if (positionals.join() !== "serve" || address === undefined || to === undefined) throw misused();
  const { stop } = await startBalancer(address, to.split(","));
  const told = { owner: owner(), address };
  if (record !== undefined) await writeService(record, told);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await stop();
  return 0;
}
