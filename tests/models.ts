/** For a whole run: a model so small that no test waits for it, for those that do not ask what it finds. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "vademecum-model-"));
  execFileSync(".venv/bin/python", ["tests/e2e/small_model.py", folder, "--smallest"]);
  process.env["VADEMECUM_SMALL_MODEL"] = folder; // which the tests' own processes inherit
  return () => rmSync(folder, { recursive: true });
}
