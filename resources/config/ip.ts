import { isIP, isIPv4 } from "node:net";

export interface Ip {
  family: 4 | 6;
  value: bigint;
}

export interface Cidr extends Ip {
  prefix: number;
}

export const BITS = { 4: 32, 6: 128 } as const;

const v4Value = (text: string) => text.split(".").reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);

/** A tail in dotted form (`::ffff:192.0.2.1`) becomes two groups. */
function groupsOf(part: string): bigint[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (!group.includes(".")) return [BigInt(`0x${group}`)];
    const value = v4Value(group);
    return [value >> 16n, value & 0xffffn];
  });
}

function v6Value(text: string): bigint {
  const [head = "", tail] = text.split("::");
  const [left, right] = [groupsOf(head), groupsOf(tail ?? "")];
  const zeros = tail === undefined ? [] : Array<bigint>(8 - left.length - right.length).fill(0n);
  return [...left, ...zeros, ...right].reduce((sum, group) => sum * 65536n + group, 0n);
}

/** An address, or nothing when the text is none. Zone indexes (`fe80::1%eth0`) are refused: they mean nothing elsewhere. */
export function parseIp(text: string): Ip | undefined {
  if (isIP(text) === 0 || text.includes("%")) return undefined;
  return isIPv4(text) ? { family: 4, value: v4Value(text) } : { family: 6, value: v6Value(text) };
}

export function parseCidr(text: string): Cidr | undefined {
  const [address = "", bits = "", ...more] = text.split("/");
  const ip = parseIp(address);
  if (ip === undefined || more.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(bits)) return undefined;
  const prefix = Number(bits);
  return prefix > BITS[ip.family] ? undefined : { ...ip, prefix };
}

const shiftOf = ({ family, prefix }: Cidr) => BigInt(BITS[family] - prefix);

/** The range from its first address on: `10.0.0.5/8` becomes `10.0.0.0/8`. */
export const network = (cidr: Cidr): Cidr => ({ ...cidr, value: (cidr.value >> shiftOf(cidr)) << shiftOf(cidr) });

export function overlaps(a: Cidr, b: Cidr): boolean {
  if (a.family !== b.family) return false;
  const wider = a.prefix < b.prefix ? a : b;
  return a.value >> shiftOf(wider) === b.value >> shiftOf(wider);
}

export const contains = (range: Cidr, ip: Ip): boolean => overlaps(range, { ...ip, prefix: BITS[ip.family] });

function v6Text(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(16 * (7 - i))) & 0xffffn).toString(16));
  const runs = [...groups.join(":").matchAll(/(?:^|:)(0(?::0)+)(?=:|$)/g)].map(([, zeros = ""]) => zeros);
  const longest = runs.sort((a, b) => b.length - a.length)[0];
  if (longest === undefined) return groups.join(":");
  return groups.join(":").replace(new RegExp(`(^|:)${longest}(:|$)`), "::");
}

export function ipText({ family, value }: Ip): string {
  if (family === 6) return v6Text(value);
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join(".");
}

export const cidrText = (cidr: Cidr): string => `${ipText(cidr)}/${cidr.prefix}`;

/** The parts of `a, b`: how an IPv4 and an IPv6 value stand in one string. */
export const commaParts = (text: string): string[] => text.split(",").map((part) => part.trim());
