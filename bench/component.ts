import { z } from "zod";
import { component } from "../provider/component";
import { binary, block, directory, file, modules, packages, parameters, unit } from "../provider/steps";
import { FILES, ROLE, type RoleFile } from "./role.js";

const put = ({ path, content, mode }: RoleFile) => file(path, content, { mode });

type Program = { path: string; sha256: string };
const program = z.object({ path: z.string(), sha256: z.string() }).strict();

const agent = (program: Program) => {
  const configuration = [put(FILES.config), put(FILES.defaults), put(FILES.unit)];
  return [
    directory(ROLE.folder),
    configuration,
    binary(FILES.program.path, program),
    unit(ROLE.unit, { enabled: true, running: true, restartOn: configuration }),
    unit(ROLE.standing, { enabled: true, running: true }),
  ];
};

/** The role as one component, as it is one role and one deploy of the others. */
export const BenchRole = component({
  kind: "BenchRole",
  about: "A host prepared for a small service.",
  args: z.object({ block: z.string(), program }),
  steps: (args) => [
    packages([ROLE.package]),
    block("/etc/hosts", ROLE.marker, args.block),
    modules(FILES.modules.path, []),
    parameters(FILES.sysctl.path, { [ROLE.parameter]: ROLE.value }, { container: true }),
    ...agent(args.program),
  ],
});

/** Of the role split in four, what no component of kubexm does. */
export const BenchAgent = component({
  kind: "BenchAgent",
  about: "A small service with its configuration and its program.",
  args: z.object({ program }),
  steps: (args) => agent(args.program),
});

/** Files as components with programs bring them. */
export const BenchFiles = component({
  kind: "BenchFiles",
  about: "Large files.",
  args: z.object({ files: z.array(program.extend({ to: z.string() })) }),
  steps: ({ files }) => files.map(({ to, path, sha256 }) => binary(to, { path, sha256 })),
});

// Pulumi's provider process loads this file for it.
export { forKind } from "../provider/dynamic";
