import { ArgumentError } from "../errors";
import { sh } from "../shell";
import type { Step } from "../step";
import { unit } from "./unit";

const port = /^\d{1,5}(-\d{1,5})?\/(tcp|udp)$/;
const network = /^[0-9a-f.:]+\/\d{1,3}$/;

/**
 * Ports (`6443/tcp`, `30000-32767/udp`) and networks (`10.244.0.0/16`) that the firewall lets in, whichever rules on the
 * host. Each is a step of its own, so that one that is no longer wanted is closed again; all are opened in one go.
 */
export function openings(wanted: readonly string[]): Step[] {
  const wrong = wanted.find((opening) => !port.test(opening) && !network.test(opening));
  if (wrong !== undefined)
    throw new ArgumentError(wrong, "expected a port like 6443/tcp or a network like 10.244.0.0/16");
  return wanted.map((opening) => ({
    // entry_of in provider/lib/firewall.sh builds the same name.
    id: `opening ${opening}`,
    group: "openings",
    want: { open: "yes" },
    look: sh`look_opening ${opening}`,
    units: ["firewalld.service", "nftables.service"],
    save: sh`save_opening ${opening}`,
    make: sh`make_openings ${wanted}`,
    undo: sh`undo_opening ${opening}`,
  }));
}

/** Like a unit that is off, but fine with one that is not there. */
function stopped(name: string): Step {
  const { id, want, make, undo } = unit(name, { enabled: false, running: false });
  return { id, want, look: sh`look_unit ${name} | sed 's/^enabled=\(absent\|masked\)$/enabled=no/'`, make, undo };
}

/** firewalld and ufw switched off. nftables stays: to stop it is to flush the rules of everybody. */
export const firewallOff = (): Step[] => [
  stopped("firewalld.service"),
  {
    id: "ufw",
    want: { ufw: "off" },
    look: sh`if ufw_is_on; then kv ufw on; else kv ufw off; fi`,
    make: sh`set_ufw_off`,
    undo: sh`undo_ufw_off`,
  },
];
