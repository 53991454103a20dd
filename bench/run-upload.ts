// One upload as the provider does it. node run-upload.js SPEC FILE SHA256 DESTINATION
import "../cli/light-sdk.js";
import { readFileSync, statSync } from "node:fs";
import { closeAll, connect, hostSpec } from "../provider/ssh";

async function main([spec = "", file = "", sha256 = "", to = ""]: readonly string[]): Promise<void> {
  const remote = await connect(hostSpec.parse(JSON.parse(readFileSync(spec, "utf8"))));
  await remote.upload({ to, path: file, bytes: statSync(file).size, sha256 });
  await closeAll();
}

void main(process.argv.slice(2));
