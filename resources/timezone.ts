import { z } from "zod";
import { component } from "../provider/component";
import { symlink } from "../provider/steps";

export const Timezone = component({
  kind: "Timezone",
  about: "The host's time zone.",
  args: z.object({
    zone: z
      .string()
      .regex(/^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/, "expected a zone like Asia/Shanghai")
      .describe("Name in the zone database, e.g. Asia/Shanghai"),
  }),
  steps: ({ zone }) => [symlink("/etc/localtime", `/usr/share/zoneinfo/${zone}`)],
});
