// A way to a host that takes longer: every byte waits in both directions. node run-proxy.js ADDRESS PORT MILLISECONDS
// Tells its port as a line, and ends with its input.
import { type Socket, connect, createServer } from "node:net";

const [address = "", port = "22", ms = "10"] = process.argv.slice(2);

function delayed(from: Socket, to: Socket): void {
  const later = (work: () => void) => setTimeout(work, Number(ms));
  from.on("data", (bytes) => later(() => to.write(bytes)));
  from.on("end", () => later(() => to.end()));
  from.on("error", () => to.destroy());
}

const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
  const far = connect({ host: address, port: Number(port), noDelay: true, allowHalfOpen: true });
  delayed(near, far);
  delayed(far, near);
});
server.listen(0, "127.0.0.1", () => {
  const bound = server.address();
  console.log(typeof bound === "object" ? bound?.port : bound);
});
process.stdin.resume().once("end", () => process.exit(0));
