import { readFileSync } from "node:fs";
import { BaseAgent, createAgent, utils, type AnyAuthMethod, type AuthenticationType, type ParsedKey } from "ssh2";
import { textOf } from "../errors";
import type { RemoteError } from "../errors";
import { codeOf, endpoint, failure } from "./failure";
import { inTime } from "./in-time";
import type { Target } from "./target";

/**
 * sshd counts every refused key as a failed try and hangs up at the last: keys nobody named must leave room for an identity file and
 * for the password, which comes last.
 */
const MAX_AUTH_TRIES = 6;
const MAX_UNNAMED_KEYS = 4;

interface Attempt {
  /** How messages name it; never a secret. */
  name: string;
  type: AuthenticationType;
  method: AnyAuthMethod;
}

export interface AuthPlan {
  attempts: readonly Attempt[];
  /** Credentials that could not even be tried, and why. */
  unusable: readonly string[];
}

/** The keys of the running agent, without those tried otherwise, and not more than sshd has patience for. */
class FewKeysAgent extends BaseAgent<ParsedKey> {
  constructor(
    private readonly inner: BaseAgent,
    private readonly keys: readonly ParsedKey[],
  ) {
    super();
  }
  getIdentities(cb: Parameters<BaseAgent<ParsedKey>["getIdentities"]>[0]): void {
    cb(undefined, [...this.keys]);
  }
  sign(...args: unknown[]): void {
    Reflect.apply(this.inner.sign.bind(this.inner) as (...all: unknown[]) => void, undefined, args);
  }
}

function agentKeys(agent: BaseAgent): Promise<ParsedKey[]> {
  return new Promise((resolve, reject) => {
    agent.getIdentities((error, keys) => {
      if (error) return reject(error);
      const parsed = (keys ?? []).flatMap((key) => utils.parseKey(key as Buffer));
      resolve(parsed.filter((key): key is ParsedKey => !(key instanceof Error)));
    });
  });
}

function parsePrivate(text: string | Buffer, passphrase: string | undefined): ParsedKey | string {
  const key = utils.parseKey(text, passphrase) as ParsedKey | ParsedKey[] | Error;
  const one = Array.isArray(key) ? key[0] : key;
  if (one === undefined || one instanceof Error) return one?.message ?? "it holds no key";
  return one.isPrivateKey() ? one : "it is a public key";
}

/** ssh2 takes parsed keys too; its types only name text. */
const keyAttempt = (user: string, name: string, key: ParsedKey): Attempt => ({
  name,
  type: "publickey",
  method: { type: "publickey", username: user, key: key as unknown as string },
});

/** What a file system says, before it says the path once more. */
const withoutPath = (error: unknown) => textOf(error).replace(/, \w+ '.*'$/s, "");

function givenKey(target: Target): { name: string; key: ParsedKey | string } | undefined {
  if (target.privateKey !== undefined)
    return { name: "privateKey", key: parsePrivate(target.privateKey, target.passphrase) };
  const path = target.privateKeyPath;
  if (path === undefined) return undefined;
  try {
    return { name: path, key: parsePrivate(readFileSync(path), target.passphrase) };
  } catch (error) {
    return { name: path, key: withoutPath(error) };
  }
}

function identityFile(path: string, passphrase: string | undefined): { key?: ParsedKey; unusable?: string } {
  let text: Buffer;
  try {
    text = readFileSync(path);
  } catch (error) {
    return codeOf(error) === "ENOENT" ? {} : { unusable: `${path}: ${withoutPath(error)}` };
  }
  const key = parsePrivate(text, passphrase);
  return typeof key === "string" ? { unusable: `${path}: ${key}` } : { key };
}

function password(target: Target, secret: string): Attempt[] {
  let asked = false;
  // A second question means that the first answer was wrong: asking PAM again would only help to lock the account.
  const answer = (prompts: readonly { echo?: boolean }[]) => {
    const first = !asked;
    asked = true;
    return prompts.map((prompt) => (first && prompt.echo !== true ? secret : ""));
  };
  return [
    {
      name: "password",
      type: "password",
      method: { type: "password", username: target.user, password: secret },
    },
    {
      name: "keyboard-interactive",
      type: "keyboard-interactive",
      method: {
        type: "keyboard-interactive",
        username: target.user,
        prompt: (_name, _instructions, _language, prompts, finish) => finish(answer(prompts)),
      },
    },
  ];
}

/** The public half beside a private key's file, which may be locked while the agent has it open. */
function publicOf(path: string): ParsedKey[] {
  try {
    const keys = utils.parseKey(readFileSync(`${path}.pub`)) as ParsedKey | ParsedKey[] | Error;
    return [keys].flat().filter((key): key is ParsedKey => !(key instanceof Error));
  } catch {
    return [];
  }
}

/** Those that somebody named first; of the others no more than sshd has patience for. */
function inOrder(keys: readonly ParsedKey[], { privateKeyPath, identityFiles }: Target, tries: number): ParsedKey[] {
  const named = [...(privateKeyPath === undefined ? [] : [privateKeyPath]), ...identityFiles].flatMap(publicOf);
  const isNamed = (key: ParsedKey) => named.some(sameKey(key));
  const first = keys.filter(isNamed);
  const room = Math.min(MAX_UNNAMED_KEYS, Math.max(0, tries - first.length));
  return [...first, ...keys.filter((key) => !isNamed(key)).slice(0, room)];
}

const sameKey = (a: ParsedKey) => (b: ParsedKey) => a.getPublicSSH().equals(b.getPublicSSH());

/** Everything that may be tried to log in, in the order it is tried: given key, agent, identity files, password. */
export async function authPlan(target: Target, agentSocket = process.env["SSH_AUTH_SOCK"]): Promise<AuthPlan> {
  const unusable: string[] = [];
  const attempts: Attempt[] = [];
  const given = givenKey(target);
  const tried: ParsedKey[] = [];
  if (given && typeof given.key === "string") unusable.push(`${given.name}: ${given.key}`);
  if (given && typeof given.key !== "string") {
    tried.push(given.key);
    attempts.push(keyAttempt(target.user, given.name, given.key));
  }
  const fresh = (key: ParsedKey) => !tried.some(sameKey(key));
  if (target.agent && agentSocket) {
    try {
      const agent = createAgent(agentSocket);
      const asked = inTime(agentKeys(agent), target.connectTimeoutMs, () => new Error("it does not answer"));
      const tries = MAX_AUTH_TRIES - tried.length - (target.password === undefined ? 0 : 1);
      const keys = inOrder((await asked).filter(fresh), target, tries);
      tried.push(...keys);
      if (keys.length)
        attempts.push({
          name: `agent (${keys.length} keys)`,
          type: "agent",
          method: { type: "agent", username: target.user, agent: new FewKeysAgent(agent, keys) },
        });
    } catch (error) {
      unusable.push(`agent: ${textOf(error)}`);
    }
  }
  for (const path of target.identityFiles) {
    const { key, unusable: why } = identityFile(path, target.passphrase);
    if (why) unusable.push(why);
    if (!key || !fresh(key) || tried.length > MAX_UNNAMED_KEYS) continue;
    tried.push(key);
    attempts.push(keyAttempt(target.user, path, key));
  }
  if (target.password !== undefined) attempts.push(...password(target, target.password));
  return { attempts, unusable };
}

const wireType = (type: AuthenticationType): AuthenticationType => (type === "agent" ? "publickey" : type);

export interface AuthState {
  tried: string[];
  exhausted: boolean;
  offered: readonly string[];
}

/**
 * The order of ssh2's questions "what next?". `none` is never asked. A password that the server looked at and refused
 * is not offered a second time as keyboard-interactive.
 */
export function authHandler(plan: AuthPlan) {
  const state: AuthState = { tried: [], exhausted: false, offered: [] };
  const rest = [...plan.attempts];
  let last: Attempt | undefined;
  const next = (left: readonly AuthenticationType[] | null, partial: boolean | null): AnyAuthMethod | false => {
    if (left) state.offered = left;
    if (left && last?.type === "password" && partial !== true && left.includes("password")) {
      const spent = rest.findIndex((attempt) => attempt.type === "keyboard-interactive");
      if (spent >= 0) rest.splice(spent, 1);
    }
    const index = rest.findIndex((attempt) => !left?.length || left.includes(wireType(attempt.type)));
    last = index < 0 ? undefined : rest.splice(0, index + 1).at(-1);
    if (last) state.tried.push(last.name);
    else state.exhausted = true;
    return last?.method ?? false;
  };
  return { state, next };
}

const wish = ({ user, address }: Target) =>
  `set user and privateKeyPath, agent or password so that \`ssh ${user}@${address}\` works`;
const mendOr = ({ unusable }: AuthPlan, advice: string) =>
  unusable.length ? `mend what is not usable, or ${advice}` : advice;
const unusableIn = ({ unusable }: AuthPlan) => (unusable.length ? `; not usable: ${unusable.join("; ")}` : "");

export function nothingToTry(target: Target, plan: AuthPlan): RemoteError {
  const summary = `no login as ${target.user} at ${endpoint(target)}: there is no key, agent or password to try${unusableIn(plan)}`;
  return failure(target.label, "auth", summary, { advice: mendOr(plan, wish(target)) });
}

export function authFailure(target: Target, plan: AuthPlan, state: AuthState, detail: string): RemoteError {
  const tried = state.tried.length ? `tried ${state.tried.join(", ")}` : "nothing to try";
  const offered = state.offered.length ? `; the host allows ${state.offered.join(", ")}` : "";
  return failure(
    target.label,
    "auth",
    `login as ${target.user} at ${endpoint(target)} was refused: ${tried}${unusableIn(plan)}${offered} (${detail})`,
    {
      advice: `${mendOr(plan, wish(target))}. It is not tried again in this run: repeated failures make sshd (9.8 and later) shut out this machine for a while`,
    },
  );
}
