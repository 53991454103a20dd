import { z } from "zod";
import { component } from "../../provider/component";
import { Hostname } from "../hostname";
import { Kernel } from "../kernel";
import { Limits } from "../limits";
import { SELinux } from "../selinux";
import { Swap } from "../swap";
import { Timezone } from "../timezone";

/** Each of them is a component of its own too; together they cost a host one resource instead of six. */
export const System = component({
  kind: "System",
  about: "What Kubernetes needs of the system itself, in one: Hostname, Timezone, SELinux, Swap, Kernel and Limits.",
  args: z.object({
    hostname: Hostname.definition.args.shape.name,
    timezone: Timezone.definition.args.shape.zone.optional(),
    selinux: SELinux.definition.args.shape.mode,
    modules: Kernel.definition.args.shape.modules,
    sysctl: Kernel.definition.args.shape.sysctl,
    openFiles: Limits.definition.args.shape.openFiles,
  }),
  steps: ({ hostname, timezone, selinux, modules, sysctl, openFiles }, facts) =>
    [
      Hostname.definition.steps({ name: hostname }, facts),
      timezone === undefined ? [] : Timezone.definition.steps({ zone: timezone }, facts),
      SELinux.definition.steps({ mode: selinux }, facts),
      Swap.definition.steps({}, facts),
      Kernel.definition.steps({ modules, sysctl }, facts),
      Limits.definition.steps({ openFiles }, facts),
    ].flat(),
  verify: ({ timezone }, facts) =>
    timezone === undefined ? undefined : Timezone.definition.verify?.({ zone: timezone }, facts),
});
