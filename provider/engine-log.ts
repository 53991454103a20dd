import { createRequire } from "node:module";

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
  const address = process.argv[2];
  if (!address || !/^[\w.[\]:-]+:\d+$/.test(address)) return undefined;
  try {
    const load = createRequire(__filename);
    const grpc = load("@grpc/grpc-js") as { credentials: { createInsecure: () => unknown } };
    const services = load("@pulumi/pulumi/proto/engine_grpc_pb") as {
      EngineClient: new (address: string, credentials: unknown) => LogClient;
    };
    const messages = load("@pulumi/pulumi/proto/engine_pb") as { LogRequest: new () => LogRequest };
    const client = new services.EngineClient(address, grpc.credentials.createInsecure());
    return { client, request: () => new messages.LogRequest() };
  } catch {
    return undefined;
  }
}

let engine: EngineModules | undefined | null = null;

/** Tells the person something on the line of the resource it belongs to. */
export function tell(urn: string, text: string, kind: keyof typeof severity): void {
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
  engine.client.log(request, (error) => {
    if (error) plainly();
  });
}
