import { z } from "zod";
import { component } from "../provider/component";
import { binary, directory, file, unit } from "../provider/steps";
import { FILES, ROLE, type RoleFile } from "./role.js";

const put = ({ path, content, mode }: RoleFile) => file(path, content, { mode });

/** The part of the role that no component of kubexm does. */
export const BenchAgent = component({
  kind: "BenchAgent",
  about: "A small service with its configuration and its program.",
  args: z.object({ program: z.object({ path: z.string(), sha256: z.string() }).strict() }),
  steps: ({ program }) => {
    const configuration = [put(FILES.config), put(FILES.defaults), put(FILES.unit)];
    return [
      directory(ROLE.folder),
      configuration,
      binary(FILES.program.path, program),
      unit(ROLE.unit, { enabled: true, running: true, restartOn: configuration }),
      unit(ROLE.standing, { enabled: true, running: true }),
    ];
  },
});

/** Files as components with programs bring them. */
export const BenchFiles = component({
  kind: "BenchFiles",
  about: "Large files.",
  args: z.object({ files: z.array(z.object({ path: z.string(), sha256: z.string(), to: z.string() }).strict()) }),
  steps: ({ files }) => files.map(({ to, path, sha256 }) => binary(to, { path, sha256 })),
});

// Pulumi's provider process loads this file for it.
export { forKind } from "../provider/dynamic";
