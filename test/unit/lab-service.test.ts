import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startBalancer } from "../../lab/balancer.js";
import type { Lab } from "../../lab/files.js";
import { readService } from "../../lab/service-record.js";
import { balancerService, stopServices } from "../../lab/service.js";
import { alive } from "../../toolchain/owner.js";

const root = mkdtempSync(join(tmpdir(), "kubexm-service-"));
let number = 0;
after(() => rmSync(root, { recursive: true, force: true }));

/** As much of a lab as a service asks for; the machine's address in it is `gateway`. */
function labAt(gateway: string): Lab {
  const dir = join(root, String(number++));
  mkdirSync(dir);
  const host = { address: gateway.replace(/\d+$/, "11") };
  return { dir, hosts: [host] } as Lab;
}

const recordOf = ({ dir }: Lab) => join(dir, "balancer.service.json");

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await sleep(1);
  }
}

/** The first that its record says. */
const firstOf = (lab: Lab) =>
  until(() => {
    try {
      return JSON.parse(readFileSync(recordOf(lab), "utf8")) as { owner: string; starting?: boolean };
    } catch {
      return undefined;
    }
  });

/** Processes that were told to write into this lab's folder. */
const servicesOf = ({ dir }: Lab) =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${dir}/`);
    } catch {
      return false;
    }
  });

test("a service serves until its lab ends, and is found by the next who asks", async () => {
  const lab = labAt("127.0.71.1");
  const first = await balancerService(lab, ["192.0.2.1"]);
  assert.equal(first.address, "127.0.71.1");
  assert.deepEqual(await balancerService(lab, ["192.0.2.1"]), first);
  await stopServices(lab.dir);
  assert.deepEqual([alive(first.owner), readdirSync(lab.dir)], [false, ["balancer.log"]]);
});

test("whoever takes the lab down finds a service that does not serve yet", async () => {
  const lab = labAt("127.0.72.1");
  const waiting = balancerService(lab, ["192.0.2.1"]);
  const refused = assert.rejects(waiting, { name: "UserError", message: /^the lab's balancer does not start/ });
  const { owner, starting } = await firstOf(lab);
  assert.deepEqual([starting, alive(owner)], [true, true]);
  await stopServices(lab.dir);
  await refused;
  assert.equal(alive(owner), false);
});

test("one that is interrupted while it waits leaves no service", async () => {
  const lab = labAt("127.0.73.1");
  const stop = new AbortController();
  const waiting = balancerService(lab, ["192.0.2.1"], stop.signal);
  const refused = assert.rejects(waiting, /SIGINT/);
  await until(() => (servicesOf(lab).length > 0 ? true : undefined));
  stop.abort(new Error("SIGINT"));
  await refused;
  assert.deepEqual(servicesOf(lab), []);
  assert.equal(await readService(recordOf(lab)), undefined);
});

test("a load balancer whose port is taken, there or on all addresses, says what to do", async () => {
  const { stop } = await startBalancer("127.0.74.1", []);
  try {
    const said = /cannot listen on 127\.0\.74\.1:6443: a process of this machine has port 6443 .*: stop it, or/;
    await assert.rejects(startBalancer("127.0.74.1", []), { name: "UserError", message: said });
  } finally {
    await stop();
  }
});

test("one that cannot serve says why, and is gone", async () => {
  // Not an address of this machine: TEST-NET-1.
  const lab = labAt("192.0.2.1");
  await assert.rejects(balancerService(lab, ["192.0.2.9"]), /does not start:\n.*cannot listen on 192\.0\.2\.1:6443/);
  assert.deepEqual(servicesOf(lab), []);
});
