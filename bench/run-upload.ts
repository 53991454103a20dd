// One upload as the provider does it. node run-upload.js SPEC FILE SHA256 DESTINATION
import { createReadStream, readFileSync, statSync } from "node:fs";
import { closeAll, connect, hostSpec } from "../provider/ssh";

async function main([spec = "", file = "", sha256 = "", to = ""]: readonly string[]): Promise<void> {
  const remote = await connect(hostSpec.parse(JSON.parse(readFileSync(spec, "utf8"))));
  await remote.upload({ to, source: () => createReadStream(file), bytes: statSync(file).size, sha256 });
  await closeAll();
}

void main(process.argv.slice(2));
