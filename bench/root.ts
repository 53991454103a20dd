import { join } from "node:path";

/** The checkout: this file runs from dist/bench. */
export const root = join(__dirname, "..", "..");
