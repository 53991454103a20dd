import { z } from "zod";
import { component } from "../../provider/component";
import { Firewall } from "../firewall";
import { Hostname } from "../hostname";
import { HostsFile } from "../hosts-file";
import { Kernel } from "../kernel";
import { Limits } from "../limits";
import { SELinux } from "../selinux";
import { Swap } from "../swap";
import { Timezone } from "../timezone";

/** Each of them is a component of its own too; together they cost a host one resource instead of eight. */
export const System = component({
  kind: "System",
  about:
    "What Kubernetes needs of the system itself, in one: HostsFile, Hostname, Timezone, SELinux, Swap, Kernel, Limits and Firewall.",
  args: z.object({
    names: HostsFile.definition.args.shape.lines.optional(),
    hostname: Hostname.definition.args.shape.name,
    timezone: Timezone.definition.args.shape.zone.optional(),
    selinux: SELinux.definition.args.shape.mode,
    modules: Kernel.definition.args.shape.modules,
    sysctl: Kernel.definition.args.shape.sysctl,
    openFiles: Limits.definition.args.shape.openFiles,
    firewall: Firewall.definition.args.shape.mode,
    ports: Firewall.definition.args.shape.ports.optional(),
    networks: Firewall.definition.args.shape.networks,
  }),
  steps: ({ names, hostname, timezone, selinux, modules, sysctl, openFiles, firewall, ports, networks }, facts) =>
    [
      // A name that sudo cannot resolve makes it slow: the hosts file knows the new one first.
      names === undefined ? [] : HostsFile.definition.steps({ lines: names }, facts),
      Hostname.definition.steps({ name: hostname }, facts),
      timezone === undefined ? [] : Timezone.definition.steps({ zone: timezone }, facts),
      SELinux.definition.steps({ mode: selinux }, facts),
      Swap.definition.steps({}, facts),
      Kernel.definition.steps({ modules, sysctl }, facts),
      Limits.definition.steps({ openFiles }, facts),
      ports === undefined ? [] : Firewall.definition.steps({ mode: firewall, ports, networks }, facts),
    ].flat(),
  verify: ({ timezone }, facts) =>
    timezone === undefined ? undefined : Timezone.definition.verify?.({ zone: timezone }, facts),
});
