// One upload as the provider does it. node run-upload.js SPEC FILE SHA256 DESTINATION
import "../cli/light-sdk.js";
import { readFileSync } from "node:fs";
import { closeAll, connect, hostSpec } from "../provider/ssh";
import { binary } from "../provider/steps";

async function main([spec = "", file = "", sha256 = "", to = ""]: readonly string[]): Promise<void> {
  const remote = await connect(hostSpec.parse(JSON.parse(readFileSync(spec, "utf8"))));
  const [body] = binary(to, { path: file, sha256 }).bodies ?? [];
  if (!body) throw new Error("a program has a body");
  await remote.upload({ to, source: body.open, bytes: await body.size(), sha256 });
  await closeAll();
}

void main(process.argv.slice(2));
