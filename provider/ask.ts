import { RemoteError, isUnreachable, textOf } from "./errors";
import { Secret, lines, sh, type Command } from "./shell";
import type { HostSpec } from "./ssh/spec";
import type { Remote } from "./ssh/remote";

/** Something that only another host can give: a token of the cluster, say, or that it lets this host go. */
export interface Ask {
  /** Asked in this order, until one has something to say. */
  readonly hosts: readonly HostSpec[];
  readonly title: string;
  /** Prints the answer. Prints nothing where this host has nothing to do with it. Exits 3 for a no that counts for all. */
  readonly run: Command;
  /** Run where the answer came from, with it in `$answer`, once it has served its purpose. */
  readonly after?: Command;
  /** Seconds; default 300. */
  readonly timeout?: number;
}

export type Connect = (spec: HostSpec) => Promise<Remote>;

export interface Answer {
  readonly text: Secret;
  readonly done: () => Promise<void>;
}

/** The exit code of a host that refuses on behalf of all: another would say the same, perhaps after as long a wait. */
const REFUSED = 3;

/** Shorter ones would be found everywhere. */
const SHORTEST = 6;

/** What stands behind the `key=` of an answer's lines: a token or a key is as secret alone. */
const partsOf = (text: string): string[] =>
  text.split("\n").flatMap((line) => {
    const value = /^\w+=(.*)$/.exec(line)?.[1] ?? "";
    return value.length < SHORTEST ? [] : [value];
  });

async function askOne(connect: Connect, spec: HostSpec, { title, run, timeout = 300 }: Ask) {
  const remote = await connect(spec);
  const { stdout } = await remote.run(run, { title, timeout });
  return { remote, text: stdout.trim() };
}

/** The host has said why, and what to do. */
function refusal({ title }: Ask, error: RemoteError): RemoteError {
  const { host, reason, stderr = "" } = error.failure;
  return new RemoteError(`${title}: refused`, { host, reason, stderr }, { cause: error });
}

/** Nobody having anything to say is an answer too, but only if everybody could be asked. */
export async function ask(request: Ask, connect: Connect): Promise<Answer> {
  const failures: { host: string; error: unknown }[] = [];
  for (const spec of request.hosts) {
    try {
      const { remote, text } = await askOne(connect, spec, request);
      if (text === "") continue;
      const { after, title } = request;
      const secret = new Secret(text, partsOf(text));
      const done = async () => {
        if (after) await remote.run(lines(sh`answer=${secret}`, after), { title: `${title}: done`, timeout: 120 });
      };
      return { text: secret, done };
    } catch (error) {
      if (error instanceof RemoteError && error.failure.code === REFUSED) throw refusal(request, error);
      failures.push({ host: spec.name, error });
    }
  }
  // A host that says no weighs more than one that says nothing.
  const first = failures.find(({ error }) => !isUnreachable(error)) ?? failures[0];
  if (first === undefined) return { text: new Secret(""), done: () => Promise.resolve() };
  const base = first.error instanceof RemoteError ? first.error.failure : { host: first.host, reason: "exit" as const };
  throw new RemoteError(`${request.title}: no host could answer`, {
    ...base,
    stderr: failures.map(({ error }) => textOf(error)).join("\n"),
    advice: `Mend one of these hosts, or take those that are gone for good out of cluster.yaml, and run again with KUBEXM_FORGET=${failures.map(({ host }) => host).join(",")}.`,
  });
}
