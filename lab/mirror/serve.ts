import { mkdir, readFile, writeFile } from "node:fs/promises";
import http, { type Server } from "node:http";
import https from "node:https";
import net from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { scratch } from "../../toolchain/cache.js";
import { UserError, codeOf } from "../../toolchain/errors.js";
import { type Wanted, ensureBuilt, needBuildDisk, wanted } from "./build.js";
import { ensureIdentity } from "./ca.js";
import { type Lookup, fileServer } from "./files.js";
import { type Published, addresses, ensurePublished, tags } from "./images.js";
import { store } from "./oci.js";
import { type Service, startRegistry } from "./registry.js";

/** What a cluster of the usual version is made of. */
export const USUAL_PARTS = [
  ...["crane", "runc", "pause", "cni-plugins", "flannel-cni", "etcd", "crictl", "helm", "containerd", "flannel"],
  ...["debian", "coredns", "kubernetes"],
];

export interface MirrorOptions {
  /** `name` or `name@version`. */
  parts?: readonly string[];
  /** The address of this machine that the mirror listens on. */
  address?: string;
  /** More names and addresses that clients call it by. */
  names?: readonly string[];
  /** Ports to use when they are free. */
  httpPort?: number;
  httpsPort?: number;
  registryPort?: number;
}

export interface Mirror {
  urls: {
    http: string;
    https: string;
    /** `address:port` of the image registry with TLS, and without. */
    registry: string;
    registryHttp: string;
  };
  /** The certificate that clients have to trust. */
  caPath: string;
  /** By `name@version`: fulfilled when the part is served. */
  parts: ReadonlyMap<string, Promise<void>>;
  /** Fulfilled when all parts are served. */
  ready: Promise<void>;
  stop(): Promise<void>;
}

function listen(server: net.Server, address: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => {
      server.off("error", reject);
      const bound = server.address();
      resolve(typeof bound === "object" && bound ? bound.port : port);
    });
  });
}

/** Listens on the wanted port, or on any when somebody else has it. */
export async function listenNear(server: net.Server, address: string, port: number): Promise<number> {
  try {
    return await listen(server, address, port);
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") return listen(server, address, 0);
    if (codeOf(error) === "EADDRNOTAVAIL" || codeOf(error) === "ENOTFOUND")
      throw new UserError(`the mirror cannot listen on ${address}: it is not an address of this machine`);
    throw error;
  }
}

const close = (server: net.Server) => new Promise<void>((resolve) => server.close(() => resolve()));

async function freePort(address: string, port: number): Promise<number> {
  const probe = net.createServer();
  const found = await listenNear(probe, address, port);
  await close(probe);
  return found;
}

/** A folder in the cache until `release` is called; what a killed mirror left is removed on the way. */
async function holdFolder(): Promise<{ dir: string; release: () => Promise<void> }> {
  let free: () => void = () => undefined;
  const used = new Promise<void>((resolve) => (free = resolve));
  return new Promise((resolve, reject) => {
    const held = scratch("mirror", async (dir) => {
      resolve({
        dir,
        release: () => {
          free();
          return held;
        },
      });
      await used;
    });
    held.catch(reject);
  });
}

/** Files by address, as far as parts are published. */
function directory(wants: readonly Wanted[], published: ReadonlyMap<string, Published>): Lookup {
  const owner = new Map(wants.flatMap((want) => addresses(want).map((url) => [url, want.id])));
  return (path) => {
    const id = owner.get(path);
    if (id === undefined) return undefined;
    const file = published.get(id)?.files.get(path);
    return file === undefined ? "pending" : { file };
  };
}

async function stopAll(services: Service[]): Promise<void> {
  for (const service of services.reverse()) await service.stop();
}

function webService(server: Server): Service {
  return {
    stop: async () => {
      const closed = close(server);
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Serves parts at upstream's addresses, and their images by a real registry. Resolves when the servers listen; parts that
 * are not in the cache are built in the background and appear one by one.
 */
export async function startMirror(options: MirrorOptions): Promise<Mirror> {
  const { parts = USUAL_PARTS, address = "127.0.0.1", names = [] } = options;
  const { httpPort = 8180, httpsPort = 8543, registryPort = 5443 } = options;
  const wants = [...new Map(parts.map((text) => wanted(text)).map((want) => [want.id, want])).values()];
  const published = new Map<string, Published>();
  const services: Service[] = [];
  const url = (port: number) => `${address.includes(":") ? `[${address}]` : address}:${port}`;
  await needBuildDisk([wanted("registry"), ...wants]);
  try {
    const { dir, release } = await holdFolder();
    services.push({ stop: release });
    const root = join(dir, "registry");
    await mkdir(root);

    const identity = await ensureIdentity([address, "127.0.0.1", "localhost", hostname(), ...names]);
    const answer = fileServer(directory(wants, published));
    const listenWeb = async (server: Server, port: number) => {
      services.push(webService(server));
      return listenNear(server, address, port);
    };
    const plainPort = await listenWeb(http.createServer(answer), httpPort);
    const tlsPort = await listenWeb(https.createServer({ cert: identity.cert, key: identity.key }, answer), httpsPort);

    // The registry is a part like any other, and the first that is needed.
    const program = join(await ensureBuilt(wanted("registry")), "registry");
    const ca = await readFile(identity.caPath, "utf8");
    const listenRegistry = async (wish: number, tls: boolean) => {
      const port = await freePort(address, wish);
      const { certPath, keyPath } = identity;
      services.push(
        await startRegistry({ program, root, dir, address, port, ...(tls && { tls: { certPath, keyPath, ca } }) }),
      );
      return url(port);
    };
    const urls = {
      http: `http://${url(plainPort)}`,
      https: `https://${url(tlsPort)}`,
      registry: await listenRegistry(registryPort, true),
      registryHttp: await listenRegistry(registryPort + 1, false),
    };
    await writeFile(join(dir, "about.json"), JSON.stringify({ pid: process.pid, urls, caPath: identity.caPath }));

    let storing: Promise<void> = Promise.resolve();
    const stored = new Map<string, string>();
    const storeAll = async () => {
      for (const { image, repository, tag } of tags([...published.values()])) {
        const name = `${repository}:${tag}`;
        if (stored.get(name) === image.manifest) continue;
        await store(root, image, repository, tag);
        stored.set(name, image.manifest);
      }
    };
    const serve = async (want: Wanted) => {
      published.set(want.id, await ensurePublished(want));
      // One at a time; each looks anew, because an image and the program that asks for it may come in any order.
      storing = storing.catch(() => undefined).then(storeAll);
      await storing;
    };
    const promises = new Map(wants.map((want) => [want.id, serve(want)]));
    const ready = Promise.all(promises.values()).then(() => undefined);
    // Whoever waits for a part hears of its failure; nobody else has to.
    for (const promise of [ready, ...promises.values()]) promise.catch(() => undefined);
    return { urls, caPath: identity.caPath, parts: promises, ready, stop: () => stopAll(services.splice(0)) };
  } catch (error) {
    await stopAll(services);
    throw error;
  }
}
