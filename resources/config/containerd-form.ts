import { z } from "zod";
import { versionsFor } from "../../artifacts";
import { older, rowOf } from "../../artifacts/catalogue";
import type { ClusterSpec } from "./schema";

/** Which form of configuration a version of containerd reads, newest first. */
const FORMS = [
  { since: [2, 3], version: 4, plugins: "several", folders: "bin_dirs" },
  { since: [2, 1], version: 3, plugins: "several", folders: "bin_dirs" },
  { since: [2, 0], version: 3, plugins: "several", folders: "bin_dir" },
  { since: [1, 0], version: 2, plugins: "one", folders: "bin_dir" },
] as const;

const versionParts = z
  .string()
  .regex(/^v?\d+\.\d+\.\d+/)
  .transform((text) => text.replace(/^v/, "").split(".").map(Number));

export function formOf(version: string): (typeof FORMS)[number] {
  const [major = 0, minor = 0] = versionParts.parse(version);
  return FORMS.find(({ since: [a, b] }) => major > a || (major === a && minor >= b)) ?? FORMS[3];
}

/** The version that configuration is written for. */
export const containerdOf = (spec: ClusterSpec): string => versionsFor(spec).containerd;

/** Whether one version reads what is written for the other. */
export const readsTheSame = (one: string, other: string): boolean => formOf(one) === formOf(other);

/** The least version for a Kubernetes, where this one is older. */
export function leastInPlaceOf(containerd: string, kubernetes: string): string | undefined {
  const least = rowOf(kubernetes)?.leastContainerd;
  return least !== undefined && older(containerd, least) ? least : undefined;
}
