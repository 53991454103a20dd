import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { startBalancer } from "../../lab/balancer";
import { labClusterYaml, labExec, withLab, type Lab, type LabHost } from "../../lab/hosts";
import { labKubernetesFrom } from "../../lab/kubernetes";
import { USUAL_PARTS, startMirror } from "../../lab/mirror/serve";
import { gatewayOf } from "../../lab/service";
import { snapshot, type Snapshot } from "../../lab/snapshot";
import { run } from "../../toolchain/process";
import { changesOn } from "./machine-wide";
import { killTree } from "./whole-tree";

const repo = join(__dirname, "..", "..", "..");
const main = join(repo, "dist", "cli", "main.js");

/** On a master, at its own API server. */
export const KUBECTL =
  "/usr/local/bin/kubectl --cache-dir /run/test-kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://127.0.0.1:6443";

type Tree = Record<string, unknown>;

/** The spec of a cluster.yaml, as a person edits it. */
export interface Spec extends Tree {
  hosts: (Tree & { name: string })[];
  roleGroups: Record<"master" | "worker" | "etcd", string[]>;
  kubernetes: Tree & { kubeletConfiguration: Tree };
}

/** A run that goes on beside the test. */
export interface Running {
  printed: () => string;
  /** Its exit code; null when it was killed. */
  ended: Promise<number | null>;
  /** Kills it with all it started; false: it had ended by itself. */
  kill: () => Promise<boolean>;
}

/** A cluster on lab hosts, driven as a user drives it. */
export interface TestCluster {
  lab: Lab;
  cwd: string;
  /** Where state, logs and kubeconfig are. */
  home: string;
  host: (name: string) => LabHost;
  edit: (change: (spec: Spec) => void) => void;
  /** `kubexm VERB …` on the cluster file; what it printed. Another exit code than the expected one fails. */
  kubexm: (args: readonly string[], expected?: number, env?: NodeJS.ProcessEnv) => Promise<string>;
  start: (args: readonly string[]) => Running;
  /** kubectl on a master, at its own API server. */
  kubectl: (args: string, on?: string) => Promise<string>;
  /** What differs on a host from before the first run, or from when it was last remembered; empty: nothing. */
  differences: (name: string) => Promise<string>;
  /** Its owner has changed the host: from now on this is how it was before. */
  remember: (name: string) => Promise<void>;
}

export interface Shape {
  masters: readonly string[];
  workers: readonly string[];
  /** Hosts that are there and not yet in the cluster. */
  spare?: readonly string[];
  /** More parts for the mirror than the usual ones. */
  parts?: readonly string[];
  /** The hosts that the load balancer leads to; default all masters if there are several. */
  balanced?: readonly string[];
}

/** Hosts, mirror and, before several masters, a load balancer; all gone afterwards. */
export async function withCluster(shape: Shape, use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const { masters, workers, spare = [], parts = [], balanced = masters.length > 1 ? masters : [] } = shape;
  const cwd = mkdtempSync(join(tmpdir(), "kubexm-cluster-"));
  try {
    await withLab({ hosts: [...masters, ...workers, ...spare], cwd }, async (lab) => {
      const mirror = await startMirror({ address: gatewayOf(lab), parts: [...USUAL_PARTS, ...parts] });
      const before = lab.hosts.filter(({ name }) => balanced.includes(name)).map(({ address }) => address);
      const balancer = before.length > 0 ? await startBalancer(gatewayOf(lab), before) : undefined;
      try {
        await mirror.ready;
        const file = join(cwd, "cluster.yaml");
        const known = lab.hosts.filter(({ name }) => !spare.includes(name));
        const text = labClusterYaml(
          { ...lab, name: "test", hosts: known },
          {
            ...labKubernetesFrom(mirror),
            ...(balancer && { controlPlaneEndpoint: { externalLoadBalancer: "external", lb_address: gatewayOf(lab) } }),
            roleGroups: { etcd: masters, master: masters, worker: workers.length > 0 ? workers : masters },
          },
        );
        writeFileSync(file, text, { mode: 0o600 });
        await use(await drive(lab, cwd, file, masters[0] ?? ""));
      } finally {
        await balancer?.stop();
        await mirror.stop();
      }
    });
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

async function drive(lab: Lab, cwd: string, file: string, first: string): Promise<TestCluster> {
  const host = (name: string) => {
    const found = lab.hosts.find((one) => one.name === name);
    assert.ok(found, `no host ${name}`);
    return found;
  };
  const command = ([verb = "", ...args]: readonly string[]) => {
    const yes = ["up", "destroy"].includes(verb) ? ["--yes"] : [];
    return [process.execPath, main, verb, "-f", file, ...yes, ...args];
  };
  const befores = new Map<string, Snapshot>();
  const remember = async (name: string) => void befores.set(name, await snapshot(host(name)));
  await Promise.all(lab.hosts.map(({ name }) => remember(name)));
  return {
    lab,
    cwd,
    home: join(cwd, ".kubexm", "test"),
    host,
    edit: (change) => {
      const cluster = parse(readFileSync(file, "utf8")) as { spec: Spec };
      change(cluster.spec);
      writeFileSync(file, stringify(cluster, { aliasDuplicateObjects: false }));
    },
    kubexm: async (args, expected = 0, env = {}) => {
      const [program = "", ...words] = command(args);
      const ended = await run(program, words, { cwd, env, okCodes: [0, 1, 2, 130] });
      const printed = ended.stdout + ended.stderr;
      assert.equal(ended.code, expected, `kubexm ${args.join(" ")}: exit code ${ended.code}\n${printed}`);
      return printed;
    },
    start: (args) => startRun(command(args), cwd),
    kubectl: (args, on = first) => overElections(async () => (await labExec(host(on), `${KUBECTL} ${args}`)).stdout),
    differences: async (name) => {
      const then = befores.get(name);
      assert.ok(then);
      return changesOn(then, await snapshot(host(name)));
    },
    remember,
  };
}

function startRun([program = "", ...args]: readonly string[], cwd: string): Running {
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const ended = once(child, "exit").then(([code]) => code as number | null);
  return {
    printed: () => printed,
    ended,
    kill: async () => {
      const alive = child.exitCode === null && child.pid !== undefined;
      if (alive) killTree(child.pid ?? 0);
      return (await ended) === null && alive;
    },
  };
}

/** When each token expires by which a host can join. */
async function tokensOf({ kubectl }: TestCluster): Promise<Date[]> {
  const all = await kubectl(
    "-n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o 'jsonpath={range .items[*]}{.data.expiration}{\"\\n\"}{end}'",
  );
  return all
    .split("\n")
    .filter(Boolean)
    .map((text) => new Date(Buffer.from(text, "base64").toString()));
}

/** That of a join which was killed lives on for its quarter of an hour; the one of a day that kubeadm init makes may not. */
async function noTokenStays(cluster: TestCluster): Promise<void> {
  const end = Date.now() + 15 * 60_000;
  const late = (await tokensOf(cluster)).filter((expires) => !(expires.getTime() <= end));
  assert.deepEqual(late, [], "tokens that live longer than a join may take");
}

/** What nothing may be left half in: exactly these nodes, ready and taking pods, and exactly these members of etcd. */
export async function isWhole(cluster: TestCluster, nodes: readonly string[], masters: readonly string[]) {
  const { kubexm, kubectl } = cluster;
  // What has just been rebooted needs a moment to say that it is ready.
  await kubectl("wait --for condition=Ready node --all --timeout 120s");
  const rows = (await kubectl("get nodes --no-headers")).trim().split("\n");
  const found = rows.map((row) => row.split(/ +/).slice(0, 2).join(" "));
  assert.deepEqual(
    found,
    nodes.toSorted().map((name) => `${name} Ready`),
  );
  assert.equal(await members(cluster, masters[0] ?? ""), masters.toSorted().join(" "));
  await noTokenStays(cluster);
  await kubexm(["up", "--refresh", "--expect-no-changes"]);
}

/** Names of the members of etcd, as a master's own tells them. */
export async function members({ host }: TestCluster, on: string): Promise<string> {
  const etcdctl = `crictl exec $(crictl ps --name '^etcd$' -q) etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt --key=/etc/kubernetes/pki/etcd/healthcheck-client.key`;
  return (
    await labExec(host(on), `${etcdctl} member list 2>/dev/null | cut -d, -f3 | tr -d ' ' | sort | tr '\n' ' '`)
  ).stdout.trim();
}

/** A new host in the file, like those that are there. */
export function addHost(spec: Spec, { name, address }: LabHost, role: "master" | "worker"): void {
  const like = spec.hosts[0];
  assert.ok(like);
  spec.hosts.push({ ...like, name, address });
  for (const group of role === "master" ? (["master", "etcd"] as const) : (["worker"] as const))
    spec.roleGroups[group].push(name);
}

export function dropHost(spec: Spec, name: string): void {
  spec.hosts = spec.hosts.filter((host) => host.name !== name);
  for (const group of ["master", "etcd", "worker"] as const)
    spec.roleGroups[group] = spec.roleGroups[group].filter((one) => one !== name);
}

export interface Stage {
  readonly name: string;
  readonly act: (cluster: TestCluster) => Promise<void>;
}

/** Each stands on the one before. */
export async function inStages(t: TestContext, cluster: TestCluster, stages: readonly Stage[]): Promise<void> {
  const done = new Set<string>();
  for (const { name, act } of stages) {
    await t.test(name, async () => {
      await act(cluster);
      done.add(name);
    });
    if (!done.has(name)) break;
  }
}

/** While etcd elects a leader, its API server says no for a moment: clients ask again, and so does a test. */
async function overElections(ask: () => Promise<string>): Promise<string> {
  for (const end = Date.now() + 60_000; ;) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > end || !/etcdserver: (request timed out|leader changed|no leader)/.test(String(error)))
        throw error;
      await sleep(1000);
    }
  }
}

/** Waits for what must come; when it does not, the last reason is told. */
export async function until(holds: () => Promise<unknown>, seconds = 300): Promise<void> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    try {
      await holds();
      return;
    } catch (error) {
      if (Date.now() > end) throw new Error(`it did not come within ${seconds} s: ${String(error)}`, { cause: error });
      await sleep(1000);
    }
  }
}
