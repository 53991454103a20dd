import { fieldTable } from "../config/docs";
import * as components from "../index";
import { parameters } from "./node-kernel";
import { openingsByRole } from "./ports";

const INTRODUCTION = `# Components

<!-- Generated from resources/ by \`npm run docs\`; edit the components, not this page. -->

A component is one thing on one host, and a resource of its own in Pulumi. A cluster is made of them, and each can be used
alone, with a \`Host\` as \`host\`:

\`\`\`ts
import { Host, Timezone } from "kubexm";
new Timezone("box-zone", { host: new Host("box", { address: "192.0.2.9", user: "root" }), zone: "Asia/Shanghai" });
\`\`\`

Before the first change to anything its prior state is noted on the host; destroy goes back to it, last change first. What
somebody else changed since is kept and told. Every component takes \`retain\` (destroy leaves the host as it is), \`forget\`
(the host is gone for good) and \`rollbackOnFailure\` too.`;

const page = ({ definition }: (typeof components)[keyof typeof components]): string => {
  const fields = Object.entries(definition.args.shape);
  return [
    `## ${definition.kind}`,
    definition.about,
    fields.length === 0 ? "It has no arguments of its own." : fieldTable(fields),
  ].join("\n\n");
};

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

const code = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(" ");

const kernel = (): string =>
  table(
    ["Parameter", "Value", "Why"],
    parameters.map(({ name, value, why }) => [code([name]), String(value), why]),
  );

const ports = (): string =>
  table(
    ["Ports", "Roles", "What for"],
    openingsByRole.map((row) => [
      code(typeof row.ports === "function" ? ["controlPlaneEndpoint.port"] : row.ports),
      row.roles.join(", "),
      row.why,
    ]),
  );

/** docs/components.md */
export const componentsPage = (): string =>
  `${[
    INTRODUCTION,
    ...Object.values(components).map(page),
    "## What a cluster asks of the kernel",
    "Nothing stands here that only some workload wants. With pods that have IPv6, `net.ipv6.conf.all.forwarding` comes to it.",
    kernel(),
    "## What a cluster opens in the firewall",
    "Beside these: SSH on every host, 123/udp on those that serve time, the API servers' port on load balancers, the registry's on its host, and everything from and to the ranges of pods and services.",
    ports(),
  ].join("\n\n")}\n`;
