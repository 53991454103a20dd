import * as pulumi from "@pulumi/pulumi";
import { readCluster, stackSources, tellCluster, type ClusterFile, type StackValues } from "../config";

/** Pulumi knows which values are secret, and says it to its own parts only. */
const runtime = pulumi.runtime as typeof pulumi.runtime & { isConfigSecret?: (key: string) => boolean };

/** The stack's configuration. */
function stackValues(): StackValues {
  const isSecret = (key: string) => runtime.isConfigSecret?.(key) ?? true;
  const rows = Object.entries(pulumi.runtime.allConfig()).map(([key, value]) => ({
    key,
    value,
    secret: isSecret(key),
  }));
  return stackSources(pulumi.getProject(), rows);
}

/** For programs: the cluster of a file, `${env:…}` and `${config:…}` filled in, its warnings told once. */
export function loadCluster(path: string): ClusterFile {
  const { warnings, name, spec } = tellCluster(readCluster(path), path, { env: process.env, ...stackValues() });
  if (warnings.length > 0) void pulumi.log.warn(warnings.join("\n"));
  return { name, spec };
}
