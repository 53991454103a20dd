import { after, before } from "node:test";
import { closeAll, connect, type Remote } from "../../provider/ssh";
import { folder, startServer, type TestServer } from "../unit/ssh-server";

/** A server and a login to it for all tests of a file, and a folder that goes with them. */
export interface Seat {
  dir: ReturnType<typeof folder>;
  host: TestServer;
  remote: Remote;
}

export function sshSeat(): Seat {
  const seat = { dir: folder() } as Seat;
  before(async () => {
    seat.host = await startServer();
    seat.remote = await connect(seat.host.spec());
  });
  after(async () => {
    await closeAll();
    seat.host.stop();
    seat.dir.remove();
  });
  return seat;
}
