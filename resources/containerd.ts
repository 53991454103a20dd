import { z } from "zod";
import { ARCHES, fileFor, holdLogin, sources } from "../artifacts";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { archive, binary, command, data, file, pkg, template, unit } from "../provider/steps";
import { containerdConfig } from "./runtime/containerd-config";
import { noOtherContainerd } from "./runtime/existing";
import { criSocket, crictl } from "./runtime/paths";
import { client, login, registry, registryFiles } from "./runtime/registries";
import { removeContainers } from "./runtime/remove-containers";

export const Containerd = component({
  kind: "Containerd",
  about:
    "containerd with runc, crictl and the CNI plugins, from upstream's archives. Containers run on while it changes.",
  args: z.object({
    version: z.string().describe("Version of containerd"),
    runc: z.string().describe("Version of runc"),
    crictl: z.string().describe("Version of crictl"),
    cniPlugins: z.string().describe("Version of the CNI plugins"),
    arch: z.enum(ARCHES).optional().describe("Processor, where it is known before the host is asked"),
    sources: sources.prefault({}).describe("Where the files are downloaded from"),
    sandboxImage: z.string().describe("Image of the container that holds a pod's namespaces"),
    dataDir: z.string().default("/var/lib/containerd").describe("Folder of images and containers"),
    registries: z.record(z.string(), registry).default({}).describe("Where images come from, by registry"),
    logins: z.record(z.string(), login).default({}).describe("Names and passwords, by registry"),
    clients: z.record(z.string(), z.array(client)).default({}).describe("Certificates of its own, by registry"),
    config: z.record(z.string(), z.unknown()).default({}).describe("Merged into config.toml"),
    existing: z
      .enum(["refuse", "adopt", "replace"])
      .default("refuse")
      .describe("What to do with a containerd that is there and is not kubexm's: adopt keeps its programs and unit"),
  }),
  secrets: ["logins", "clients"],
  secretWhere: { sources: holdLogin },
  fixed: {
    dataDir: "running containers live in it; write it back, or take the host out of its groups and add it again",
    existing: {
      where: (was, is) => was === "adopt" || is === "adopt",
      reason:
        "whose containerd it is was settled when the host was made, and the running one would go; write it back (a host that comes later can have replace)",
    },
  },
  steps: (args, facts) => {
    const arch = args.arch ?? facts.arch;
    const { version, dataDir, sandboxImage, config: more, existing } = args;
    const from = (name: "containerd" | "runc" | "crictl" | "cni-plugins", version: string) =>
      fileFor(name, version, arch, args.sources);
    // Of those that are adopted nobody need have the files.
    const own =
      existing === "adopt"
        ? []
        : [
            archive("/usr/local", from("containerd", version)),
            binary("/usr/local/sbin/runc", from("runc", args.runc)),
            template("/etc/systemd/system/containerd.service", "containerd/containerd.service", {}),
          ];
    const conf = file("/etc/containerd/config.toml", containerdConfig({ version, dataDir, sandboxImage, more }));
    return [
      ...(existing === "refuse" ? own.slice(0, 1).map(noOtherContainerd) : []),
      // Of a small installation of the RHEL family it is no part.
      ...(facts.os.packageManager === "apt" ? [] : pkg("tar")),
      // What a containerd of others has is theirs, what came since too.
      ...(existing === "adopt" ? [] : [data(dataDir)]),
      ...["/opt/cni/bin", "/etc/cni/net.d", "/var/lib/cni"].map((path) => data(path)),
      archive("/opt/cni/bin", from("cni-plugins", args.cniPlugins)),
      ...own,
      archive("/usr/local/bin", from("crictl", args.crictl)),
      file("/etc/crictl.yaml", `runtime-endpoint: ${criSocket}\nimage-endpoint: ${criSocket}\ntimeout: 30\n`),
      conf,
      ...Object.entries(args.registries).flatMap(([name, registry]) => registryFiles(name, registry, args)),
      unit("containerd.service", { enabled: true, running: true, restartOn: [...own, conf] }),
      answering,
      ...(existing === "adopt" ? [] : [removeContainers(dataDir)]),
    ];
  },
});

const answers = sh`${crictl} -t 10s info`;

/** It can run and yet not serve Kubernetes, when its plugin could not start; only a new start helps then. */
const answering = command("containerd answers", {
  doneWhen: answers,
  run: sh`tries=0
until out=$(${answers} 2>&1); do
  tries=$((tries + 1))
  if [ $tries = 10 ]; then systemctl restart containerd; fi
  [ $tries -lt 30 ] || {
    journalctl -u containerd -n 200 --no-pager -o cat | grep 'failed to load plugin' | tail -n 3 >&2
    printf '%s\n' "$out" | grep -v level=warning >&2
    return 1
  }
  sleep 1
done`,
});
