import { createRequire } from "node:module";
import { engineAddress } from "./orphan";

interface LogClient {
  log: (request: unknown, done: (error: unknown) => void) => void;
}
interface LogRequest {
  setSeverity: (value: number) => void;
  setMessage: (text: string) => void;
  setUrn: (urn: string) => void;
  setEphemeral: (value: boolean) => void;
}
interface EngineModules {
  client: LogClient;
  request: () => LogRequest;
}

const severity = { status: 1, info: 1, warning: 2 } as const;

/** The engine's own log service. Not a public interface, so anything unexpected falls back to plain lines. */
function connectEngine(): EngineModules | undefined {
  const address = engineAddress();
  if (!address) return undefined;
  try {
    const load = createRequire(__filename);
    const grpc = load("@grpc/grpc-js") as { credentials: { createInsecure: () => unknown } };
    const services = load("@pulumi/pulumi/proto/engine_grpc_pb") as {
      EngineClient: new (address: string, credentials: unknown) => LogClient;
    };
    const messages = load("@pulumi/pulumi/proto/engine_pb") as { LogRequest: new () => LogRequest };
    const client = new services.EngineClient(`${address.host}:${address.port}`, grpc.credentials.createInsecure());
    return { client, request: () => new messages.LogRequest() };
  } catch {
    return undefined;
  }
}

let engine: EngineModules | undefined | null = null;

/** Nobody reads faster, and each word is a call of the engine, which tells others in turn. */
const READABLE_MS = 150;

/** What goes on at resources, and is not told yet. */
const latest = new Map<string, string>();

/** Tells the person something on the line of the resource it belongs to; of what goes on just now, only what lasts. */
export function tell(urn: string, text: string, kind: keyof typeof severity): void {
  if (kind !== "status") return send(urn, text, kind);
  if (!latest.has(urn)) setTimeout(() => sendLatest(urn), READABLE_MS).unref();
  latest.set(urn, text);
}

const onTheWay = new Set<Promise<void>>();

/** Nothing goes on there any more, and all that was said of it has arrived. */
export async function ended(urn: string): Promise<void> {
  latest.delete(urn);
  await Promise.all(onTheWay);
}

function sendLatest(urn: string): void {
  const text = latest.get(urn);
  latest.delete(urn);
  if (text !== undefined) send(urn, text, "status");
}

function send(urn: string, text: string, kind: keyof typeof severity): void {
  engine = engine === null ? connectEngine() : engine;
  const plainly = () => {
    if (kind !== "status") process.stdout.write(`${urn.split("::").at(-1) ?? ""}: ${text}\n`);
  };
  if (!engine) return plainly();
  const request = engine.request();
  request.setSeverity(severity[kind]);
  request.setMessage(text);
  request.setUrn(urn);
  request.setEphemeral(kind === "status");
  const { client } = engine;
  const arrived = new Promise<void>((resolve) => {
    client.log(request, (error) => {
      if (error) plainly();
      onTheWay.delete(arrived);
      resolve();
    });
  });
  onTheWay.add(arrived);
}
