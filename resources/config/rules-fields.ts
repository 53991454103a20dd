import { KUBELET_FIELDS, KUBE_PROXY_FIELDS, type Fields } from "./kubernetes-fields";
import type { Path } from "./problems";
import type { Finding, Rule } from "./rule";
import type { ClusterSpec } from "./schema";
import { closest } from "./words";

interface Configuration {
  name: string;
  argument: "kubeletConfiguration" | "kubeProxyConfiguration";
  program: string;
  fields: Fields;
}

const CONFIGURATIONS: readonly Configuration[] = [
  { name: "kubelet-field", argument: "kubeletConfiguration", program: "kubelet", fields: KUBELET_FIELDS },
  { name: "kube-proxy-field", argument: "kubeProxyConfiguration", program: "kube-proxy", fields: KUBE_PROXY_FIELDS },
];

const isSection = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const unknownFields =
  ({ argument, program, fields }: Configuration) =>
  ({ kubernetes }: ClusterSpec): Finding[] =>
    Object.entries(fields).flatMap(([name, known]) => {
      const at: Path = ["kubernetes", argument, ...(name === "" ? [] : [name])];
      const section = name === "" ? kubernetes[argument] : kubernetes[argument][name];
      const strange = isSection(section) ? Object.keys(section).filter((key) => !known.includes(key)) : [];
      return strange.map((key) => {
        const meant = closest(key, known);
        const advice = meant === undefined ? `remove it, unless a newer ${program} has it` : `write ${meant}`;
        return { path: [...at, key], message: `${program} knows no such field, and passes over it; ${advice}` };
      });
    });

/** Warnings, as a newer Kubernetes may have fields that stand in no table here. */
export const FIELD_RULES: readonly Rule[] = CONFIGURATIONS.map((configuration) => ({
  name: configuration.name,
  severity: "warning",
  check: unknownFields(configuration),
}));
