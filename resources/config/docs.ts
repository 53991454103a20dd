import { z } from "zod";
import { clusterFile } from "./schema";
import { metaOf, unwrap } from "./walk";

type Schema = z.core.$ZodType;

interface Section {
  title: string;
  about: string;
  fields: readonly (readonly [string, Schema])[];
}

const code = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;
const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

function typeText(schema: Schema): string {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodEnum) return inner.options.map((option) => code(JSON.stringify(option))).join(" ");
  if (inner instanceof z.ZodLiteral) return [...inner.values].map((value) => code(JSON.stringify(value))).join(" ");
  if (inner instanceof z.ZodUnion) return inner.options.map(typeText).join(" or ");
  if (inner instanceof z.ZodArray) return `list of ${typeText(inner.element)}`;
  if (inner instanceof z.ZodRecord)
    return inner.valueType instanceof z.ZodType && isObject(inner.valueType)
      ? "sections by name"
      : recordText(inner.valueType);
  if (inner instanceof z.ZodObject) return "section";
  if (inner instanceof z.ZodNumber) return numberText(inner);
  if (inner instanceof z.ZodBoolean) return "true or false";
  return "text";
}

const recordText = (value: Schema) => {
  const inner = unwrap(value);
  return inner instanceof z.ZodString || inner instanceof z.ZodBoolean ? `\`key: ${typeText(inner)}\`` : "any section";
};

function numberText({ minValue, maxValue }: z.ZodNumber): string {
  const least = minValue === null || minValue <= Number.MIN_SAFE_INTEGER ? undefined : minValue;
  const most = maxValue === null || maxValue >= Number.MAX_SAFE_INTEGER ? undefined : maxValue;
  if (least !== undefined && most !== undefined) return `number ${least}–${most}`;
  return least === undefined ? "number" : `number ≥ ${least}`;
}

const isObject = (schema: Schema) => unwrap(schema) instanceof z.ZodObject;

function defaultText(schema: Schema): string {
  if (schema instanceof z.ZodDefault) return code(JSON.stringify(schema.def.defaultValue));
  if (schema instanceof z.ZodPipe) return defaultText(schema.in);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) return "";
  return "**required**";
}

/** The sections within a field: an object, a list of objects, or objects by name. */
function within(title: string, schema: Schema): Section[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodArray) return within(`${title}[]`, inner.element);
  if (inner instanceof z.ZodRecord) return within(`${title}.<name>`, inner.valueType);
  if (!(inner instanceof z.ZodObject)) return [];
  const shape: Readonly<Record<string, Schema>> = inner.shape;
  const fields = Object.entries(shape);
  const about = metaOf(schema).description ?? "";
  return [
    { title, about, fields },
    ...fields.flatMap(([key, field]) => within(title === "" ? key : `${title}.${key}`, field)),
  ];
}

/** A table of the fields: key, type, default and meaning. */
export function fieldTable(fields: Section["fields"]): string {
  const rows = fields.map(([key, schema]) => {
    const { description = "", examples: [example] = [] } = metaOf(schema);
    const shown =
      example === undefined ? "" : ` (as in ${code(typeof example === "string" ? example : JSON.stringify(example))})`;
    return `| ${code(key)} | ${typeText(schema)} | ${defaultText(schema)} | ${cell(description)}${shown} |`;
  });
  return ["| Key | Type | Default | Meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

const section = ({ title, about, fields }: Section): string =>
  [
    `## ${title === "" ? "The file" : title.replace(/</g, "\\<")}`,
    ...(about === "" ? [] : [`${about}.`]),
    fieldTable(fields),
  ].join("\n\n");

const INTRODUCTION = `# cluster.yaml

<!-- Generated from resources/config by \`npm run docs\`; edit the schema, not this page. -->

One file describes one cluster. \`kubexm validate -f cluster.yaml\` tells everything that is wrong with it, with line and
column, without touching a host. Editors check the file while it is written when its first line is
\`# yaml-language-server: $schema=…/cluster.schema.json\` (the schema lies beside this page, and in the
package as \`docs/cluster.schema.json\`).

- Values can come from elsewhere: \`\${env:NAME}\` is an environment variable, \`\${config:NAME}\` a value of the Pulumi
  stack's configuration (\`kubexm config set --secret NAME\`, see \`docs/cli.md\`). No password need stand in the file.
- A role group names hosts one by one, or several at once: \`node[1:3]\` is node1, node2 and node3; \`node[01:10]\` keeps the
  zero.
- Unknown keys are refused. A key without a value is refused: leave it out instead.
- A file of this machine that is named without its folder (\`privateKeyPath: id_ed25519\`) stands beside the cluster file.
- Addresses and ranges of both families stand in one string: \`"172.16.0.2,2022::2"\`.`;

/** docs/cluster-yaml.md */
export const clusterPage = (): string => `${[INTRODUCTION, ...within("", clusterFile).map(section)].join("\n\n")}\n`;

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const PLACE = { $ref: "#/$defs/place" };
const NO_TEXT: readonly unknown[] = ["number", "integer", "boolean"];
/** Plain text takes a place already; these do not. */
const isStrict = ({ type, ...rest }: Readonly<Record<string, Json>>) =>
  NO_TEXT.includes(type) || (typeof type === "string" && ["enum", "const", "pattern"].some((key) => key in rest));
/** What says something about a field, whatever stands there. */
const TOLD = ["description", "default", "examples"];

/** A schema in which a value from elsewhere may stand wherever kubexm takes one. */
function withPlaces(node: Json): Json {
  if (Array.isArray(node)) return node.map(withPlaces);
  if (node === null || typeof node !== "object") return node;
  if (!isStrict(node))
    return Object.fromEntries(
      Object.entries(node).map(([key, value]) => [key, TOLD.includes(key) ? value : withPlaces(value)]),
    );
  const [told, form] = [true, false].map((wanted) =>
    Object.fromEntries(Object.entries(node).filter(([key]) => TOLD.includes(key) === wanted)),
  );
  return { ...told, anyOf: [form ?? {}, PLACE] };
}

/** docs/cluster.schema.json: what may be written, before defaults are filled in. */
export function clusterJsonSchema(): string {
  const schema = withPlaces(z.toJSONSchema(clusterFile, { io: "input" }) as Json);
  const place = {
    type: "string",
    pattern: "^\\$\\{(env|config):[A-Za-z_][A-Za-z0-9_.:-]*\\}$",
    description: "A value from the environment or from the configuration of the Pulumi stack",
  };
  const all = { title: "cluster.yaml of kubexm", ...(schema as object), $defs: { place } };
  return `${JSON.stringify(all, null, 2)}\n`;
}
