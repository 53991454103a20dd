import { connect } from "node:net";

const LOOK_MS = 2000;

/** Where Pulumi's engine, whose provider this process is, listens. */
export function engineAddress(): { host: string; port: number } | undefined {
  const [, host, port] = /^([\w.[\]:-]+):(\d+)$/.exec(process.argv[2] ?? "") ?? [];
  return host === undefined ? undefined : { host, port: Number(port) };
}

/** Pulumi ends its provider; where it was killed itself, nobody does. What is at work on hosts comes to its end first. */
export function endWithEngine(busy: () => boolean): void {
  const address = engineAddress();
  if (!address) return;
  const look = () => {
    if (busy()) return;
    const socket = connect(address, () => socket.destroy());
    socket.unref().on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") process.exit();
    });
  };
  setInterval(look, LOOK_MS).unref();
}
