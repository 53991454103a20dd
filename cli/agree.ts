import { createInterface } from "node:readline/promises";
import { UserError } from "../toolchain/errors.js";

interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  terminal?: boolean;
}

/** Asks a person; no answer is a no. ^C, which readline takes for itself, ends the command as anywhere else. */
export async function agreed(
  question: string,
  place: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  const ask = createInterface(place);
  try {
    return await new Promise<boolean>((resolve, reject) => {
      ask.once("SIGINT", () => {
        place.output.write("\n");
        reject(new Error("SIGINT"));
      });
      ask.once("close", () => resolve(false));
      ask.question(`${question} [y/N] `).then((answer) => resolve(/^y(es)?$/i.test(answer.trim())), reject);
    });
  } finally {
    ask.close();
  }
}

/** As Pulumi itself does: where nobody can be asked, what takes a cluster away must have been said. */
export function refuseUnasked(cluster: string, isTerminal: boolean): void {
  if (isTerminal) return;
  throw new UserError(
    `destroy takes "${cluster}" off all its hosts, and there is no terminal to ask on: add --yes if that is meant`,
  );
}
