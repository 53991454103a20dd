// Writes the pages that come from the code. `npm run docs`
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ready, root, start } from "./setup.mjs";

const require = createRequire(import.meta.url);

await start(async () => {
  await ready();
  const { clusterPage, clusterJsonSchema } = require(join(root, "dist/resources/config/docs.js"));
  const { componentsPage } = require(join(root, "dist/resources/modules/docs.js"));
  writeFileSync(join(root, "docs/components.md"), componentsPage());
  writeFileSync(join(root, "docs/cluster-yaml.md"), clusterPage());
  writeFileSync(join(root, "docs/cluster.schema.json"), clusterJsonSchema());
});
