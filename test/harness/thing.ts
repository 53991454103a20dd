import { z } from "zod";
import type { Definition } from "../../provider/definition";
import type { World } from "../../provider/lifecycle";
import type { Remote } from "../../provider/ssh/remote";
import { Secret, sh } from "../../provider/shell";
import { command } from "../../provider/steps";

const args = z.object({
  folder: z.string(),
  names: z.array(z.string()),
  /** This one cannot be made. */
  broken: z.string().default(""),
  /** This one cannot be taken back. */
  stuck: z.string().default(""),
  secret: z.string().default("none"),
});

/** A component of empty files, made by commands: what a fake host without root can carry. */
export const thing: Definition = {
  kind: "Thing",
  about: "Empty files",
  args,
  secrets: ["secret"] as never,
  steps: (given) => {
    const { folder, names, broken, stuck, secret } = given as z.output<typeof args>;
    return names.map((name) =>
      command(name, {
        run: sh`[ ${name} != ${broken} ] || { echo cannot make it; printf '%s\n' ${new Secret(secret)}; exit 7; }
printf '%s\n' ${name} >>${folder}/made; : >${folder}/${name}`,
        doneWhen: sh`test -e ${folder}/${name}`,
        undo: sh`[ ${name} != ${stuck} ] || { echo cannot take it back; exit 8; }
printf '%s\n' ${name} >>${folder}/undone; rm -f ${folder}/${name}`,
      }),
    );
  },
};

export interface Heard {
  kind: string;
  text: string;
}

/** Surroundings that remember what was told, and how often somebody connected. */
export function fakeWorld(remote: () => Promise<Remote>, controller = "me@here pid 1") {
  const heard: Heard[] = [];
  const count = { connects: 0 };
  const world: World = {
    connect: () => {
      count.connects++;
      return remote();
    },
    tell: (_urn, text, kind) => void heard.push({ kind, text }),
    forgotten: [],
    ending: false,
    renewed: new Set<string>(),
    controller,
  };
  return { world, heard, count };
}

export const never = () => Promise.reject(new Error("nobody may connect here"));

export const inputsFor = (more: Readonly<Record<string, unknown>>, name = "one", stack = "s") => ({
  host: { name: "h1", address: "192.0.2.1" },
  resource: { name, urn: `urn:pulumi:${stack}::p::Thing::${name}` },
  __provider: "exports.handler=…",
  ...more,
});
