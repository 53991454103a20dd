import { isDeepStrictEqual } from "node:util";
import { parse } from "../../provider/arguments";
import { definitionOf } from "../../provider/definition";
import type { DynamicProvider } from "../../provider/dynamic";
import { UserError } from "../../provider/errors";
import { idOf, schemaVersion, type Inputs, type World } from "../../provider/lifecycle";
import { asked as askedSchema } from "./asked";
import { tryBackwards, withBackwards } from "./backwards";
import type { Row } from "./checks";
import { ClusterPreflight, Preflight } from "./components";
import { beside, Earlier, newest } from "./earlier";
import { examine } from "./host";
import { count, countsText, gravest, inOrder, tableText } from "./table";
import { judgeTogether, type HostResult } from "./together";

const kinds = [Preflight, ClusterPreflight].map(({ definition }) => definition.kind);

export const isPreflight = (kind: string): boolean => kinds.includes(kind);

const resultIn = (outputs: Inputs) => outputs["result"] as HostResult | undefined;
const hasFailed = (result: HostResult | undefined) => result?.rows.some((row) => row.result === "fail") === true;
const storedAs = (inputs: Inputs, more: Inputs) => ({ ...inputs, schema: schemaVersion, drift: [], ...more });

/** What is asked of which machine: the way onto it does not count. */
function matter(kind: string, inputs: Inputs) {
  const own = Object.entries(inputs).filter(([key]) => key in definitionOf(kind).args.shape);
  return { ...Object.fromEntries(own), address: (inputs["host"] as { address?: unknown } | undefined)?.address };
}

async function examineHost(world: World, inputs: Inputs): Promise<HostResult> {
  const { args, common } = parse(Preflight.definition, inputs);
  const { host } = common;
  const { result } = await examine(host.name, askedSchema.parse(args), () => world.connect(host));
  return result;
}

/** Everything a person has to know, in one error before any change. */
function refuse(rows: readonly Row[], hosts: number, passed: number): UserError {
  const counts = countsText({ hosts, pass: passed, warn: count(rows, "warn"), fail: count(rows, "fail") });
  const failed = rows.flatMap(({ result, check }) => (result === "fail" && check !== "connect" ? [check] : []));
  const ignoring = `, or name them in the cluster file: ignorePreflight: [${[...new Set(failed)].join(", ")}] (docs/preflight.md)`;
  return new UserError(
    `${counts}; nothing was changed\n${tableText(rows)}\nMend what failed and run again${failed.length > 0 ? ignoring : ""}`,
  );
}

type Judge = (results: readonly HostResult[]) => readonly Row[];

/**
 * Before a cluster has passed once, everything that counts was seen in this run: what was in the way may have been mended,
 * and something else have come. Later on the others are looked at again only where they would be in the way.
 */
async function lookTogether(
  results: readonly HostResult[],
  { earlier, judge, passed }: { earlier: Earlier; judge: Judge; passed: readonly HostResult[] | undefined },
): Promise<readonly HostResult[]> {
  if (passed === undefined) return Promise.all(results.map((result) => earlier.renewed(result)));
  const known = results.map((result) => newest(result, passed));
  if (count(judge(known), "fail") === 0) return known;
  return Promise.all(results.map(async (result, i) => beside(known[i] ?? result, await earlier.renewed(result))));
}

const renewedIn = (outputs: Inputs) => (outputs["renewed"] ?? []) as readonly HostResult[];

async function examineCluster(
  world: World,
  { inputs, olds, earlier }: { inputs: Inputs; olds?: Inputs; earlier: Earlier },
): Promise<Inputs> {
  const { args, common } = parse(ClusterPreflight.definition, inputs);
  const { host, resource } = common;
  const stored = args["results"] as HostResult[];
  const reach = askedSchema.shape.reach.parse(args["reach"]);
  const unreached = await tryBackwards(() => world.connect(host), reach);
  const judge: Judge = (results) => judgeTogether(withBackwards(results, host.name, unreached));
  const results = await lookTogether(stored, { earlier, judge, passed: olds && renewedIn(olds) });
  const rows = inOrder(gravest([...results.flatMap((result) => result.rows), ...judge(results)]));
  const passed = results.reduce((sum, result) => sum + result.passed, 0) + count(rows, "pass");
  const told = rows.filter(({ result }) => result !== "pass");
  if (count(told, "fail") > 0) throw refuse(told, results.length, passed);
  if (told.length > 0) world.tell(resource.urn, tableText(told), "info");
  // The results stand with the hosts they are of, but for those that would be in the way as they stand there.
  const outdated = new Set(judge(stored).flatMap((row) => (row.result === "fail" ? [row.host] : [])));
  return storedAs(inputs, { results: [], renewed: results.filter((result) => outdated.has(result.host)) });
}

/** All kinds live in one process, and it in one run. */
const ofThisProcess = new Earlier();

/**
 * Preflight in Pulumi's terms: a create looks, and a host that failed is looked at anew with the next run. There is
 * nothing to read or to take back, so that a refresh or a destroy does not go to the host for it.
 */
export function preflightProvider(
  kind: string,
  base: DynamicProvider,
  world: World,
  earlier = ofThisProcess,
): DynamicProvider {
  const plain = (value: Inputs) => JSON.parse(JSON.stringify(value)) as Inputs;
  const run = async (inputs: Inputs, olds?: Inputs) =>
    kind === Preflight.definition.kind
      ? storedAs(inputs, { result: await examineHost(world, inputs) })
      : examineCluster(world, { inputs, earlier, ...(olds !== undefined && { olds }) });
  return {
    check: base.check,
    diff: (id, olds, news) => {
      const result = resultIn(olds);
      if (result !== undefined) earlier.note(result, () => examineHost(world, news));
      return hasFailed(result) ? Promise.resolve({ changes: true }) : base.diff(id, olds, news);
    },
    create: async (inputs) => {
      const outs = plain(await run(inputs));
      return { id: idOf(kind, parse(definitionOf(kind), inputs).common), outs };
    },
    read: (id, props) => Promise.resolve({ id, props }),
    update: async (_id, olds, news) => {
      const result = resultIn(olds);
      // A change of credentials alone is no reason to look again.
      const same =
        result !== undefined && !hasFailed(result) && isDeepStrictEqual(matter(kind, olds), matter(kind, news));
      return { outs: plain(same ? storedAs(news, { result }) : await run(news, olds)) };
    },
    delete: () => Promise.resolve(),
  };
}
