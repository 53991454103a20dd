import * as pulumi from "@pulumi/pulumi";
import { ConfigError, judgeCluster, problemText, readCluster, type ClusterFile, type Sources } from "../config";

/** Pulumi knows which values are secret, and says it to its own parts only. */
const runtime = pulumi.runtime as typeof pulumi.runtime & { isConfigSecret?: (key: string) => boolean };

/** The stack's configuration, by names with and, for this project's own, without the project before them. */
function stackValues(): Pick<Sources, "config" | "secrets"> {
  const own = `${pulumi.getProject()}:`;
  const values = Object.entries(pulumi.runtime.allConfig()).flatMap(([key, value]) =>
    [key, ...(key.startsWith(own) ? [key.slice(own.length)] : [])].map((name) => ({ key, name, value })),
  );
  const isSecret = (key: string) => runtime.isConfigSecret?.(key) ?? true;
  return {
    config: Object.fromEntries(values.map(({ name, value }) => [name, value])),
    secrets: values.filter(({ key }) => isSecret(key)).map(({ name }) => name),
  };
}

/** For programs: the cluster of a file, `${env:…}` and `${config:…}` filled in, its warnings told once. */
export function loadCluster(path: string): ClusterFile {
  const { cluster, problems } = judgeCluster(readCluster(path), { env: process.env, ...stackValues() });
  const of = (wanted: "error" | "warning") => problems.filter(({ severity }) => severity === wanted);
  if (cluster === undefined) throw new ConfigError(path, of("error"));
  const warnings = of("warning").map((problem) => problemText(path, problem));
  if (warnings.length > 0) void pulumi.log.warn(warnings.join("\n"));
  return cluster;
}
