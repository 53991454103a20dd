import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { openings, pkg, template, unit } from "../provider/steps";

/**
 * A server that is in step itself has answered, and by it this clock is right to a tenth of a second. To choose among
 * servers chrony waits for some more answers, which takes it seconds: until then the clock is as right.
 */
export const ANSWERED = String.raw`^^,[^x~],[^,]*,[0-9]*,[0-9-]*,0*[1-9][0-9]*,[0-9]*,-\{0,1\}0\.0`;

export const Chrony = component({
  kind: "Chrony",
  about: "Clock kept right by chrony, from time servers or from a host of the cluster; in step within 10 seconds.",
  args: z.object({
    servers: z
      .array(z.string().min(1))
      .describe("Names or addresses of time servers; none: what the distribution set up stays"),
    serve: z
      .boolean()
      .default(false)
      .describe("Serve time to the other hosts, by its own clock when no server answers; opens 123/udp"),
    allow: z.array(z.string()).default([]).describe("Networks that may ask this host for the time"),
  }),
  steps: ({ servers, serve, allow }, { os }) => {
    const running = { enabled: true, running: true };
    if (servers.length === 0 && !serve) return [pkg("chrony"), unit(os.chronyUnit, running)];
    const conf = template(os.chronyConf, "chrony/chrony.conf", {
      servers,
      serve,
      allow,
      keys: os.chronyKeys,
      drift: os.chronyDrift,
    });
    return [
      openings(serve ? ["123/udp"] : []),
      pkg("chrony"),
      conf,
      unit(os.chronyUnit, { ...running, restartOn: [conf] }),
    ];
  },
  verify: ({ servers, serve }) =>
    servers.length === 0
      ? { title: "chronyd answers", test: sh`chronyc -n tracking >/dev/null`, seconds: 10 }
      : {
          title: `clock in step with ${servers.join(", ")}`,
          // A host that serves is in step with its own clock at least, so that the others need not wait for the world.
          test: sh`${serve ? sh`chronyc -n tracking | grep -q '^Leap status *: Normal'` : sh`chronyc -c -n sources | grep -q ${ANSWERED}`} ||
{ chronyc -n sources; echo 'none of the time servers has answered: are they reachable by UDP 123?'; return 1; }`,
          seconds: 10,
        },
});
