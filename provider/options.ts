import { z } from "zod";
import { hostSpec } from "./ssh/spec";

/** What every component takes beside its own arguments. */
export const commonArgs = {
  host: hostSpec.describe("The host it stands on"),
  retain: z.boolean().default(false).describe("On destroy, leave the host as it is and only drop the records"),
  forget: z.boolean().default(false).describe("On destroy, do not insist that the host can be reached"),
  rollbackOnFailure: z.boolean().default(false).describe("If it fails, take back at once what was done"),
  resource: z
    .object({ name: z.string(), urn: z.string() })
    .strict()
    .describe("Name and address of the Pulumi resource (set by kubexm)"),
};
