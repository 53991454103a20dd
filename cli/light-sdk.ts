/**
 * Pulumi's SDK loads a TypeScript compiler and half of npm to turn functions into text, which kubexm never asks of it.
 * With this they load when they are first used: 0.35 s of CPU time and 55 MB less for every process with the SDK in it.
 * So do the languages of zod's messages and, for the provider, yaml: 40 ms more. Zod makes no functions of schemas. Where promises
 * of the program come from is not written down, and lines for `--debug` are not sent: the SDK does so for each of thousands, and
 * shows it to whoever debugs them only.
 * Imported before the SDK here, and by NODE_OPTIONS in the provider processes that Pulumi starts.
 */
import Module from "node:module";
import { join, sep } from "node:path";

type Load = (name: string, parent?: { filename?: string | null }, isMain?: boolean) => unknown;

const SDK = ["node_modules", "@pulumi", "pulumi", ""].join(sep);
const ZOD = ["node_modules", "zod", ""].join(sep);
const OURS = join(__dirname, "..") + sep;
/** What is asked for, and by whose files. */
const HEAVY = [
  ...["typescript", "@npmcli/arborist", "normalize-package-data"].map((name) => ({ name, by: SDK })),
  { name: "../locales/index.cjs", by: ZOD },
  { name: "yaml", by: OURS },
];

/** Of the SDK itself, as its own files ask for it. */
const OWN_LOG = /^(\.|(\.\.\/)*\.\.)\/log$/;

/** Stands for a module until something in it is asked for. */
function onFirstUse(load: () => unknown): unknown {
  let module: object | undefined;
  const real = () => (module ??= load() as object);
  const get = (_: object, key: string | symbol): unknown => {
    // So that TypeScript's import helpers take it as it is, instead of copying what is in it.
    if (key === "__esModule") return true;
    return key === "default" && !("default" in real()) ? real() : Reflect.get(real(), key);
  };
  return new Proxy({}, { get, has: (_, key) => Reflect.has(real(), key), ownKeys: () => Reflect.ownKeys(real()) });
}

const loader = Module as unknown as { _load: Load };
const original = loader._load;

type Track = (promise: Promise<unknown>, context: unknown) => Promise<unknown>;

/** As `track`, but with no stack. */
const stackless =
  (track: Track): Track =>
  (promise, context) => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return track(promise, context);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  };

const lightened = new Set<unknown>();

/** The module through which all of the SDK keeps track of promises; it is asked for by many, and changed once. */
function lighten(module: unknown): unknown {
  const tracking = module as { debuggablePromise?: Track; debugPromiseLeaks?: boolean };
  if (tracking.debuggablePromise && tracking.debugPromiseLeaks === false && !lightened.has(module))
    tracking.debuggablePromise = stackless(tracking.debuggablePromise);
  lightened.add(module);
  return module;
}

/** Zod makes a function of every schema that is asked: 40 ms of `drift`, and nothing won with a file of 10,000 hosts. */
function withoutCompiler(module: unknown): unknown {
  (module as { config?: (how: { jitless: boolean }) => void }).config?.({ jitless: true });
  return module;
}

/** The SDK sends the engine several lines for each resource that only `pulumi --debug` shows. */
function withoutDebug(module: unknown): unknown {
  const log = module as { debug?: unknown };
  if (Object.getOwnPropertyDescriptor(log, "debug")?.writable) log.debug = () => Promise.resolve();
  return module;
}

loader._load = (name, parent, isMain) => {
  const load = () => original.call(loader, name, parent, isMain);
  if (HEAVY.some((heavy) => heavy.name === name && parent?.filename?.includes(heavy.by))) return onFirstUse(load);
  if (name === "zod" && parent?.filename?.startsWith(OURS)) return withoutCompiler(load());
  if (!parent?.filename?.includes(SDK)) return load();
  if (name.endsWith("/debuggable")) return lighten(load());
  return OWN_LOG.test(name) ? withoutDebug(load()) : load();
};
