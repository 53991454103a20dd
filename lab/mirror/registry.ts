import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError, messageOf } from "../../toolchain/errors.js";
import { run } from "../../toolchain/process.js";

export interface RegistryOptions {
  program: string;
  /** Storage; several registries may share it. */
  root: string;
  /** For configuration files. */
  dir: string;
  address: string;
  port: number;
  /** Speaks TLS when given. */
  tls?: { certPath: string; keyPath: string; ca: string };
}

export interface Service {
  stop(): Promise<void>;
}

function config({ root, address, port, tls }: RegistryOptions): string {
  // The registry reads YAML, of which JSON is a part.
  return JSON.stringify({
    version: "0.1",
    log: { level: "error", accesslog: { disabled: true } },
    storage: {
      filesystem: { rootdirectory: root },
      delete: { enabled: true },
      maintenance: { uploadpurging: { enabled: false } },
    },
    http: {
      addr: `${address.includes(":") ? `[${address}]` : address}:${port}`,
      secret: randomBytes(16).toString("hex"),
      ...(tls && { tls: { certificate: tls.certPath, key: tls.keyPath } }),
    },
  });
}

function answers({ address, port, tls }: RegistryOptions): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: address, port, path: "/v2/", timeout: 2000, agent: false };
    const request = tls ? https.get({ ...options, ca: tls.ca }) : http.get(options);
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(false));
  });
}

const TRIES = 300;

/** Starts the distribution registry; resolves when it answers. */
export async function startRegistry(options: RegistryOptions): Promise<Service> {
  const file = join(options.dir, `registry-${options.port}.yml`);
  await writeFile(file, config(options), { mode: 0o600 });
  const ending = new AbortController();
  let over: string | undefined;
  // It must not outlive us, not even when we are killed.
  const command = ["--pdeathsig", "KILL", options.program, "serve", file];
  const ended = run("setpriv", command, { env: { OTEL_TRACES_EXPORTER: "none" }, signal: ending.signal }).then(
    () => void (over = "it ended"),
    (error: unknown) => void (over = messageOf(error)),
  );
  const stop = async () => {
    ending.abort();
    await ended;
  };
  for (let i = 0; i < TRIES && over === undefined; i++) {
    if (await answers(options)) return { stop };
    await sleep(100);
  }
  await stop();
  throw new UserError(
    `the image registry does not start at ${options.address}:${options.port}: ${over ?? "no answer"}`,
  );
}
