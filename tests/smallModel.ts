/** For a whole run: build a tiny embedding model for tests that do not depend on search quality. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "vademecum-model-"));
  execFileSync(".venv/bin/python", ["tests/e2e/small_model.py", folder, "--smallest"]);
  process.env["VADEMECUM_SMALL_MODEL"] = folder; // worker processes inherit it
  return () => rmSync(folder, { recursive: true });
}
