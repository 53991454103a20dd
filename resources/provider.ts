/** What Pulumi's provider process loads: the lifecycle, with all components known to it. */
import "./index";
import { lookForDrift, type DriftReport, type Stored } from "../provider/drift";
import { forKind, world } from "../provider/dynamic";

export { forKind };
export type { DriftReport, Stored };

export const driftOf = (stored: readonly Stored[]): Promise<DriftReport> => lookForDrift(stored, world());
