import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { engine } from "../../cli/engine.js";
import { pidLives } from "../../cli/claim.js";

const bin = mkdtempSync(join(tmpdir(), "kubexm-engine-"));
after(() => rmSync(bin, { recursive: true, force: true }));
writeFileSync(join(bin, "pulumi"), "#!/bin/sh\necho $$\n");
chmodSync(join(bin, "pulumi"), 0o755);

test("a ^C that comes when Pulumi has just ended does nothing", async () => {
  const pulumi = engine(bin, "3.259.0", () => true);
  let pid = 0;
  let interrupted = 0;
  const command = pulumi.command as unknown as {
    run: (args: string[], cwd: string, env: object, say: (text: string) => void) => Promise<{ code: number }>;
  };
  const ended = command.run(["up"], bin, {}, (text) => (pid = Number(text)));
  // Looks in every turn of the event loop: in one of them the process is gone, and its end not yet heard of.
  const look = () => {
    if (pid > 0 && !pidLives(pid) && interrupted === 0) {
      interrupted++;
      pulumi.interrupt();
    } else setImmediate(look);
  };
  look();
  assert.equal((await ended).code, 0);
  assert.equal(interrupted, 1);
});
