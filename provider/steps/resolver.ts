import { isIP } from "node:net";
import { ArgumentError } from "../errors";
import { sh } from "../shell";
import type { Step } from "../step";

/** DNS servers that are asked first, by whatever rules name resolution on the host. */
export function resolver(servers: readonly string[]): Step {
  const wrong = servers.find((server) => isIP(server) === 0);
  if (wrong !== undefined) throw new ArgumentError(wrong, "expected an IP address");
  return {
    id: "resolver",
    want: { recorded: "yes", servers: servers.join(" ") },
    look: sh`look_resolver ${servers}`,
    save: sh`save_resolver`,
    make: sh`set_resolver ${servers}`,
    undo: sh`unset_resolver ''`,
  };
}
