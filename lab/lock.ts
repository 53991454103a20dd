import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../toolchain/errors.js";

/**
 * One process of this machine at a time. The lock is an abstract socket: it is gone with the process that held it, whatever
 * ended that, and there is no file to leave behind.
 */
export async function withLock<T>(name: string, use: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const release = await acquire(`\0kubexm-lab/${name}`, signal);
  try {
    return await use();
  } finally {
    await release();
  }
}

async function acquire(path: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  for (;;) {
    signal?.throwIfAborted();
    const server = createServer().unref();
    try {
      await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
      return () => new Promise((resolve) => server.close(() => resolve()));
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE") throw error;
      await sleep(50 + Math.random() * 100);
    }
  }
}
