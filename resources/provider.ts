/** What Pulumi's provider process loads: the lifecycle, with all components known to it. */
import "./index";
import { lookForDrift, type DriftReport, type Stored } from "../provider/drift";
import { forKind as baseFor, world, type DynamicProvider } from "../provider/dynamic";
import { journaled } from "../provider/journal";
import type { ClusterSpec } from "./config";
import { isPreflight, preflightProvider } from "./preflight/provider";
import type { PreflightReport } from "./preflight/report";

export { isOurs } from "../provider/drift";
export { entriesIn, passphraseIn, type Became, type Entry } from "../provider/journal";
export { idOf, isGivenUp } from "../provider/lifecycle";
export { countsText, tableText } from "./preflight/table";
export type { DriftReport, PreflightReport, Stored };

export function forKind(kind: string): DynamicProvider {
  const base = baseFor(kind);
  return journaled(kind, isPreflight(kind) ? preflightProvider(kind, base, world()) : base);
}

const kindOf = ({ type }: Stored) => type.slice(type.lastIndexOf(":") + 1);

export const driftOf = (stored: readonly Stored[]): Promise<DriftReport> =>
  lookForDrift(
    stored.filter((item) => !isPreflight(kindOf(item))),
    world(),
  );

/** Loaded when asked for: Pulumi's provider process never is. */
export const preflightOf = async (cluster: string, spec: ClusterSpec): Promise<PreflightReport> =>
  (await import("./preflight/report.js")).preflight(cluster, spec, world());
