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

/**
 * Asks ten times a second by the service's DNS name; a line each tells the answer, or when and why there was none. It begins
 * with twenty answers in a row: of two CoreDNS one may hear of the service half a minute after the other.
 */
const client = `ask() { curl -sS -m 2 http://echo.default.svc.cluster.local:8080 2>&1; }
row=0
until [ $row = 20 ]; do if ask | grep -q hello; then row=$((row + 1)); else row=0; sleep 0.2; fi; done
while true; do answer=$(ask); [ "$answer" = hello ] && echo hello || echo "$(date +%T.%3N) $answer"; sleep 0.1; done`;

const service = `
apiVersion: v1
kind: Service
metadata: { name: echo }
spec: { selector: { app: echo }, ports: [{ port: 8080 }] }
`;

export interface Probe {
  /** How many requests so far, and when and why some got no answer. */
  count: () => Promise<{ asked: number; failed: string[] }>;
}

/** What a test prints of it, whether it is content or not. */
export const tellProbe = (during: string, { asked, failed }: Awaited<ReturnType<Probe["count"]>>) =>
  `probe, while ${during}: ${asked} requests of a pod to another node, ${failed.length} without an answer`;

/** In the cluster a client asks a service on another node, from now on. */
export async function startProbe({ kubectl }: TestCluster, from: string, to: string, on?: string): Promise<Probe> {
  const text = [pod("echo", to, server), pod("client", from, client), service].join("---");
  await kubectl(`apply -f - >/dev/null <<'EOF'\n${text}\nEOF`, on);
  await kubectl("wait --for=condition=Ready --timeout=120s pod/echo pod/client", on);
  const lines = async () => (await kubectl("logs client", on)).split("\n").slice(0, -1);
  for (let tries = 0; (await lines()).length === 0; tries++) {
    if (tries === 120)
      throw new Error(`the client gets no answer: ${await kubectl("describe pod echo client | tail -n 40", on)}`);
    await sleep(1000);
  }
  return {
    count: async () => {
      const told = await lines();
      const failed = told.filter((line) => line !== "hello");
      return { asked: told.length, failed };
    },
  };
}
