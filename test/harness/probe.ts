import { setTimeout as sleep } from "node:timers/promises";
import type { TestCluster } from "./cluster";

const pod = (name: string, node: string, script: string, more = "") => `
apiVersion: v1
kind: Pod
metadata: { name: ${name}, labels: { app: ${name} } }
spec:
  nodeName: ${node}
  terminationGracePeriodSeconds: 0
  tolerations: [{ operator: Exists }]
  containers:
    - name: main
      image: docker.io/library/debian:bookworm
      command: ["/bin/bash", "-c", ${JSON.stringify(script)}]${more}
`;

/** Answers one request after another, in the Perl that every Debian has. */
const server = `exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 8080, Listen => 64, ReuseAddr => 1) or die; while ($c = $s->accept) { sysread $c, $b, 4096; print $c "HTTP/1.0 200 OK\\r\\n\\r\\nhello"; close $c }'`;

/** Asks ten times a second by the service's DNS name; the last line tells how often, and how often in vain. */
const client = `ok=0 bad=0; until curl -s -m 2 http://echo.default.svc.cluster.local:8080 | grep -q hello; do sleep 0.2; done; echo begun
while true; do if curl -s -m 2 http://echo.default.svc.cluster.local:8080 | grep -q hello; then ok=$((ok+1)); else bad=$((bad+1)); date +%T; fi; echo "asked $ok failed $bad"; sleep 0.1; done`;

const service = `
apiVersion: v1
kind: Service
metadata: { name: echo }
spec: { selector: { app: echo }, ports: [{ port: 8080 }] }
`;

export interface Probe {
  /** Requests so far, and how many of them got no answer. */
  count: () => Promise<{ asked: number; failed: number }>;
}

/** In the cluster a client asks a service on another node, from now on. */
export async function startProbe({ kubectl }: TestCluster, from: string, to: string, on?: string): Promise<Probe> {
  const text = [pod("echo", to, server), pod("client", from, client), service].join("---");
  await kubectl(`apply -f - >/dev/null <<'EOF'\n${text}\nEOF`, on);
  await kubectl("wait --for=condition=Ready --timeout=120s pod/echo pod/client", on);
  const last = async () => (await kubectl("logs client --tail=1", on)).trim();
  for (let tries = 0; !/^(asked|begun)/.test(await last()); tries++) {
    if (tries === 60)
      throw new Error(`the client gets no answer: ${await kubectl("describe pod echo client | tail -n 40", on)}`);
    await sleep(1000);
  }
  return {
    count: async () => {
      const [, asked = "", failed = ""] = /^asked (\d+) failed (\d+)$/.exec(await last()) ?? [];
      return { asked: Number(asked), failed: Number(failed) };
    },
  };
}
