export { bastionSpec, hostSpec, secretLeaves, type BastionSpec, type HostSpec } from "./spec";
export type { Remote, RunOptions, RunResult, Upload } from "./remote";
export { closeAll, countConnections, type Counters } from "./link";
import { run } from "./exec";
import { connectLink, linkTo, type Link } from "./link";
import type { Remote } from "./remote";
import type { HostSpec } from "./spec";
import { resolveTarget } from "./target";
import { upload } from "./transfer";

/** One object for one link, so that what is learnt about a host can be kept with it. */
const remotes = new WeakMap<Link, Map<string, Remote>>();

/**
 * The host of a spec, logged in. All callers in this process share one connection per user, address and way;
 * it closes by itself some seconds after the last use, and does not keep the process alive while idle.
 */
export async function connect(spec: HostSpec): Promise<Remote> {
  const target = resolveTarget(spec);
  const link = linkTo(target);
  const seat = { link, target };
  await connectLink(link, target);
  const known = remotes.get(link) ?? new Map<string, Remote>();
  remotes.set(link, known);
  const remote = known.get(spec.name) ?? {
    name: spec.name,
    run: (script, options) => run(seat, script, options),
    upload: (body) => upload(seat, body),
  };
  known.set(spec.name, remote);
  return remote;
}
