import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { file, pkg, symlink } from "../provider/steps";

export const Timezone = component({
  kind: "Timezone",
  about: "The host's time zone.",
  args: z.object({
    zone: z
      .string()
      .regex(/^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/, "expected a zone like Asia/Shanghai")
      .describe("Name in the zone database, e.g. Asia/Shanghai"),
  }),
  steps: ({ zone }, { os }) => [
    pkg("tzdata"),
    symlink("/etc/localtime", `/usr/share/zoneinfo/${zone}`),
    // Debian's programs read the name from here.
    os.family === "debian" ? [file("/etc/timezone", `${zone}\n`)] : [],
  ],
  verify: ({ zone }) => ({
    title: `time zone ${zone}`,
    test: sh`[ -f ${`/usr/share/zoneinfo/${zone}`} ] || { echo ${`the host's zone database has no ${zone}`}; return 1; }`,
    seconds: 1,
  }),
});
