// The role through Pulumi, as the kubexm command runs a cluster. node run-pulumi.js JOB VERB [FLAGS]
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ResourceTransformation } from "@pulumi/pulumi";
import { codeOf, exitWith } from "../cli/exit.js";
import { PULUMI_VERBS, pulumiArguments } from "../cli/flags.js";
import { runPulumi } from "../cli/pulumi.js";
import { Host, HostsFile, Kernel, Packages } from "../index.js";
import { BenchAgent, BenchRole } from "./component.js";
import type { RoleJob } from "./role-resources.js";

type AnyClass = new (name: string, args: Record<string, unknown>, opts: object) => unknown;
const KINDS = { Packages, HostsFile, Kernel, BenchAgent, BenchRole } as unknown as Readonly<Record<string, AnyClass>>;

/** The package does not carry the bench, so its components are found by their path. */
const loadHere =
  (kind: string): ResourceTransformation =>
  ({ props, opts }) => {
    const file = JSON.stringify(join(__dirname, "component.js"));
    const loader = `exports.handler=()=>require(${file}).forKind("${kind}")`;
    return { props: { ...(props as object), __provider: loader }, opts };
  };

function program({ hosts, components }: RoleJob): void {
  for (const { name, ...reach } of hosts) {
    const host = new Host(name, reach);
    for (const [kind, args] of Object.entries(components)) {
      const Component = KINDS[kind];
      if (!Component) throw new Error(`no component ${kind}`);
      const opts = kind.startsWith("Bench") ? { transformations: [loadHere(kind)] } : {};
      new Component(`${name}-${kind}`, { host, ...args }, opts);
    }
  }
}

async function main([file = "", name, ...flags]: readonly string[]): Promise<number> {
  const verb = PULUMI_VERBS.find((verb) => verb === name) ?? "preview";
  const job = JSON.parse(readFileSync(file, "utf8")) as RoleJob;
  return runPulumi(verb, pulumiArguments(verb, ["--file", file, "--yes", ...flags]), {
    cluster: "bench",
    program: () => Promise.resolve(program(job)),
  });
}

void codeOf(() => main(process.argv.slice(2))).then(exitWith);
