import { z } from "zod";
import { hasLogin } from "../../artifacts/sources";
import { localPath } from "../../provider/ssh/spec";
import { commaParts, parseCidr, parseIp } from "./ip";

/** A string of a certain form. The examples serve the documents, the editor, and the advice in problems. */
function form(what: string, example: string, holds: (text: string) => boolean) {
  return z
    .string()
    .refine(holds, { message: `is not ${what}; write for example ${example}` })
    .meta({ examples: [example] });
}

const matches = (pattern: RegExp) => (text: string) => pattern.test(text);

const LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
const DNS = new RegExp(`^(?=.{1,253}$)${LABEL}(\\.${LABEL})*$`);
/** A registry may have a port, and need not be a DNS name. */
const REGISTRY = /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-f:]+\](:\d{1,5})?$/;

export const isDnsName = matches(DNS);

export const dnsName = form("a DNS name (lower-case letters, digits, - and .)", "lb.example.com", isDnsName);
/** Longer ones are no label's value, and the kernel has room for 64. */
export const hostName = form(
  "a host name (lower-case letters, digits, - and ., at most 63)",
  "node1",
  (text) => isDnsName(text) && text.length <= 63,
);
export const isCertificateName = (text: string): boolean =>
  isDnsName(text.replace(/^\*\./, "")) || parseIp(text) !== undefined;
export const certificateName = form("a DNS name or IP address", "lb.example.com", isCertificateName);
export const address = z
  .string()
  .min(1)
  .regex(/^[^\s,]*$/, { message: "holds a space or comma; write one IP address or name, for example 192.0.2.10" })
  .meta({ examples: ["192.0.2.10"] });
export const ip = form("an IP address", "192.0.2.10", (text) => parseIp(text) !== undefined);

const areDifferent = (families: readonly number[]) => new Set(families).size === families.length;
const pair = (text: string, parse: (part: string) => { family: 4 | 6 } | undefined) => {
  const parts = commaParts(text).map(parse);
  const known = parts.filter((part) => part !== undefined);
  return known.length === parts.length && areDifferent(known.map(({ family }) => family));
};
export const ips = form("one IPv4 and/or one IPv6 address", '"172.16.0.2,2022::2"', (text) => pair(text, parseIp));
export const cidrs = form("one IPv4 and/or one IPv6 range", "10.233.64.0/18,fd85:ee78:d8a6:8607::1:0/112", (text) =>
  pair(text, parseCidr),
).overwrite((text) => text.toLowerCase());

export const absolutePath = form(
  "an absolute path without . and .. and without / at its end",
  "/data/kubexm",
  matches(/^(?!.*\/\.{1,2}(?:\/|$))(?:\/[^/\0\n]+)+$/),
);
export const localFile = localPath.min(1);
export const url = form(
  "an http:// or https:// address",
  "https://mirror.example.com",
  (text) => /^https?:\/\/[^\s/]+/.test(text) && URL.canParse(text),
);
export const registryName = form("a registry's name", "registry.example.com:5000", matches(REGISTRY));
/** containerd takes a login from its own place, and all that is in the address would stand in the state as it is written. */
const openly = <T extends z.ZodType<string>>(address: T) =>
  address.refine((text) => !hasLogin(text), {
    message: "holds a login, which is not taken from here; write it in registry.auths, under the mirror's name",
  });
export const registryUrl = openly(url);
export const registryAddress = openly(
  form(
    "a registry's name or address",
    "https://registry.example.com",
    (text) => REGISTRY.test(text) || (/^https?:\/\/[^\s/]+/.test(text) && URL.canParse(text)),
  ),
);
export const timezone = form("a time zone", "Asia/Shanghai", matches(/^[A-Za-z][A-Za-z0-9]*([/_+-][A-Za-z0-9]+)*$/));
export const packageName = form("a package's name", "nfs-common", matches(/^[A-Za-z0-9][A-Za-z0-9.+:~=_-]*$/));
export const argument = form("an argument --name or --name=value", "--v=2", matches(/^--[a-z0-9][a-z0-9.-]*(=.*)?$/s));
export const featureGate = z.string().regex(/^[A-Z][A-Za-z0-9]*$/, {
  message:
    "is not a feature gate's name (an upper-case letter first); write for example RotateKubeletServerCertificate",
});
export const zoneName = form("a DNS zone with an optional port", "example.io:1053", (text) =>
  matches(/^[A-Za-z0-9._-]+(:\d{1,5})?$/)(text),
);
export const nameserver = form(
  "an IP address with an optional port",
  "1.1.1.1",
  (text) => parseIp(text) !== undefined || /^(\d{1,3}\.){3}\d{1,3}:\d{1,5}$|^\[[0-9a-f:]+\]:\d{1,5}$/.test(text),
);

const bare = (text: string) => text.replace(/^v/, "");
const VERSION = /^v?\d{1,4}\.\d{1,4}\.\d{1,4}(-[0-9A-Za-z.-]+)?$/;

/** Kubernetes writes a v before its versions, its components' archives mostly do not: both are accepted, one is kept. */
export const kubernetesVersion = form("a version of three numbers", "v1.35.4", matches(VERSION)).overwrite(
  (text) => `v${bare(text)}`,
);
export const version = form("a version of three numbers", "1.7.6", matches(VERSION)).overwrite(bare);

/** One value or several: `a` is `[a]`. */
export const oneOrMore = <T extends z.ZodType<string>>(item: T) =>
  z.union([item, z.array(item)]).transform((value): string[] => [value].flat());

export const yes = (what: string) => z.boolean().default(true).describe(what);
export const no = (what: string) => z.boolean().default(false).describe(what);
export const count = (least: number, most: number) => z.number().int().min(least).max(most);
export const port = count(1, 65535);
/** Configuration that is handed on as it stands. */
export const passthrough = z.record(z.string(), z.json());

const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
export const labels = z.record(
  form("a label's key", "disk", matches(LABEL_KEY)),
  form("a label's value (letters, digits, - _ and ., at most 63)", "SSD", matches(LABEL_VALUE)),
);
export const taint = form("a taint key=value:Effect", "dedicated=db:NoSchedule", (text) => {
  const [, key = "", , value = ""] = /^([^=:]+)(=([^:]*))?:(?:NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text) ?? [];
  return LABEL_KEY.test(key) && LABEL_VALUE.test(value);
});
