import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";

type Way = "toHost" | "fromHost";

/** What happens to a connection, counted in bytes of that connection. */
export interface Fault {
  readonly way: Way;
  readonly after: number;
  /** cut: both sides are reset. flip: one bit is another. stop: nothing goes on, and nobody is told. */
  readonly kind: "cut" | "flip" | "stop";
}

/** A TCP proxy on loopback that does to connections what networks do to them. */
export interface CuttingProxy {
  readonly port: number;
  /** Ends what is connected; every connection from now on meets this fault; none: all is well again. */
  set(fault: Fault | undefined): Promise<void>;
  /** Bytes of the latest connection. */
  counted(): Readonly<Record<Way, number>>;
  /** How often the fault came about. */
  struck(): number;
  close(): Promise<void>;
}

export async function cuttingProxy(host: string, port: number): Promise<CuttingProxy> {
  let fault: Fault | undefined;
  let bytes: Record<Way, number> = { toHost: 0, fromHost: 0 };
  let strikes = 0;
  const sockets = new Set<Socket>();

  const carry = (way: Way, from: Socket, to: Socket, mine: Record<Way, number>, plan: Fault | undefined) => {
    from.on("data", (data) => {
      const before = mine[way];
      mine[way] += data.length;
      if (plan?.way !== way || mine[way] <= plan.after) return void to.write(data);
      if (before <= plan.after) strikes++;
      const at = Math.max(0, plan.after - before);
      if (plan.kind === "flip") {
        if (before <= plan.after) data[at] = (data[at] ?? 0) ^ 1;
        return void to.write(data);
      }
      if (plan.kind === "stop") return;
      // What came before the cut still arrives, as on a real line.
      to.write(data.subarray(0, at), () => {
        from.destroy();
        to.destroy();
      });
    });
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  };

  const server = createServer((client) => {
    const mine = (bytes = { toHost: 0, fromHost: 0 });
    const upstream = connect({ host, port, noDelay: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.once("close", () => sockets.delete(socket));
    }
    carry("toHost", client, upstream, mine, fault);
    carry("fromHost", upstream, client, mine, fault);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    set: async (next) => {
      fault = next;
      strikes = 0;
      for (const socket of sockets) socket.destroy();
      // The other side has to hear of it before it is asked for anything again.
      await sleep(50);
    },
    counted: () => ({ ...bytes }),
    struck: () => strikes,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
