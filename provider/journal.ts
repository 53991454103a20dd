import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from "node:crypto";
import { appendFileSync, fdatasync, fstatSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { definitionOf, type Definition } from "./definition";
import type { DynamicProvider } from "./dynamic";
import { HalfMade, type Inputs } from "./lifecycle";
import { secretLeaves } from "./ssh/spec";

export type Operation = "create" | "update" | "delete";

/**
 * What a run does with one resource: that it begins, with what, and what came of it. Pulumi writes its whole state twice for
 * each of them; with a journal beside it, once at the end is enough, and what a kill left can be told from the journal.
 */
export type Entry =
  | {
      readonly at: "begin";
      readonly op: Operation;
      readonly urn: string;
      readonly inputs: Inputs;
      readonly secret: string[];
    }
  | { readonly at: "end"; readonly urn: string; readonly became: Became };

export type Became =
  | { readonly what: "made"; readonly outs: Inputs }
  | { readonly what: "half"; readonly outs: Inputs; readonly reasons: readonly string[] }
  | { readonly what: "gone" }
  | { readonly what: "unchanged" };

type Env = Readonly<Record<string, string | undefined>>;

/** As Pulumi itself finds it; undefined: none is set. */
export function passphraseIn(env: Env): string | undefined {
  const { PULUMI_CONFIG_PASSPHRASE: given, PULUMI_CONFIG_PASSPHRASE_FILE: file } = env;
  return given ?? (file ? readFileSync(file, "utf8").trim() : undefined);
}

const CIPHER = "aes-256-gcm";
const keyOf = (passphrase: string, salt: Buffer) => scryptSync(passphrase, salt, 32);

/** Properties of resources hold secrets: every line is encrypted with the passphrase of the state. */
function sealed(key: Buffer, salt: Buffer, entry: Entry): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv(CIPHER, key, iv);
  const text = Buffer.concat([cipher.update(JSON.stringify(entry)), cipher.final()]);
  return `${[salt, iv, cipher.getAuthTag(), text].map((part) => part.toString("base64")).join(" ")}\n`;
}

/** A whole line or none: half of one, as a full disk leaves it, would spoil what is written after it once there is room. */
function append(file: number, line: string): void {
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, line);
  } catch (error) {
    ftruncateSync(file, size);
    throw error;
  }
}

interface Writer {
  readonly write: (entry: Entry) => void;
  /** To the disk, before what is written of happens: a power cut here does not undo it on the host. */
  readonly flush: () => Promise<void>;
}

/** One for all kinds of a process: a key takes as long to make as a hundred entries. */
const writers = new Map<string, Writer>();

function writerOf({ KUBEXM_JOURNAL: path, ...env }: Env): Writer | undefined {
  const passphrase = path ? passphraseIn(env) : undefined;
  if (!path || passphrase === undefined) return undefined;
  const name = JSON.stringify([path, passphrase]);
  const known = writers.get(name);
  if (known) return known;
  const salt = randomBytes(16);
  const key = keyOf(passphrase, salt);
  // Held open to the end: to open and close it for every entry takes longer than to write that.
  const file = openSync(path, "a", 0o600);
  const made: Writer = {
    write: (entry) => append(file, sealed(key, salt, entry)),
    flush: () => promisify(fdatasync)(file),
  };
  writers.set(name, made);
  return made;
}

/**
 * All that a journal holds; its first line, by the command, is none of it. A last line that a kill cut off says nothing: it had
 * not begun, or is not known to have ended.
 */
export function entriesIn(path: string, passphrase: string): Entry[] {
  const keys = new Map<string, Buffer>();
  const rows = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return rows.slice(rows[0] !== undefined && !rows[0].includes(" ") ? 1 : 0).map((row): Entry => {
    const [salt = "", ...rest] = row.split(" ");
    const key = keys.get(salt) ?? keyOf(passphrase, Buffer.from(salt, "base64"));
    keys.set(salt, key);
    const [iv, tag, text] = rest.map((part) => Buffer.from(part, "base64"));
    if (!iv || !tag || !text) throw new Error("it is damaged");
    const decipher = createDecipheriv(CIPHER, key, iv).setAuthTag(tag);
    return JSON.parse(Buffer.concat([decipher.update(text), decipher.final()]).toString()) as Entry;
  });
}

function holdsSecret(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, item]) => ((secretLeaves as readonly string[]).includes(key) && item !== undefined) || holdsSecret(item),
  );
}

/** Properties that must not stand in a state in clear; the provider is given them so. */
function secretIn({ secrets = [], secretWhere = {} }: Definition, props: Inputs): string[] {
  const named: readonly string[] = ["revealed", ...secrets];
  const found = Object.entries(props).filter(([key, value]) => holdsSecret(value) || secretWhere[key]?.(value));
  return [...new Set([...named, ...found.map(([key]) => key)])];
}

const urnOf = (props: Inputs) => String((props["resource"] as { urn?: unknown } | undefined)?.urn);

function becameOf(error: unknown): Became {
  if (!(error instanceof HalfMade)) return { what: "unchanged" };
  return { what: "half", outs: error.properties, reasons: error.reasons };
}

/** A provider that keeps a journal of what it does, where the run wants one. */
export function journaled(kind: string, base: DynamicProvider, env: Env = process.env): DynamicProvider {
  const definition = definitionOf(kind);
  let writer: Writer | undefined | null = null;
  async function kept<T>(op: Operation, inputs: Inputs, work: () => Promise<T>, came: (done: T) => Became): Promise<T> {
    writer = writer === null ? writerOf(env) : writer;
    if (!writer) return work();
    const journal = writer;
    const urn = urnOf(inputs);
    const end = (became: Became) => {
      try {
        journal.write({ at: "end", urn, became });
      } catch {
        // Then it counts as one whose end is not known, which the next run looks at.
      }
    };
    journal.write({ at: "begin", op, urn, inputs, secret: secretIn(definition, inputs) });
    try {
      await journal.flush();
      const done = await work();
      end(came(done));
      return done;
    } catch (error) {
      end(becameOf(error));
      throw error;
    }
  }
  return {
    ...base,
    create: (inputs) =>
      kept(
        "create",
        inputs,
        () => base.create(inputs),
        ({ outs }) => ({ what: "made", outs }),
      ),
    update: (id, olds, news) =>
      kept(
        "update",
        news,
        () => base.update(id, olds, news),
        ({ outs }) => ({ what: "made", outs }),
      ),
    delete: (id, props) =>
      kept(
        "delete",
        props,
        () => base.delete(id, props),
        () => ({ what: "gone" }),
      ),
  };
}
