/** A scripted assistant: a language model over real HTTP behind the real server. */

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { withOwnServer } from "./app.ts";

/** A rule of tests/server/scripted_llm.py: the first one whose `when` is in the question gives the answer. */
export interface Rule {
  when: string;
  say: string[];
  first_s?: number;
  pause_s?: number;
  status?: number;
  ends?: "done" | "broken" | "silent" | "never";
}

/** Use a server with an assistant. Extraction is off, so that the assistant gets only the requests of the tests. */
export function withAssistant(rules: readonly Rule[], extractionDaily = 0): void {
  let model: ChildProcess;
  const settings: Record<string, string> = {
    VADEMECUM_ASSISTANT_MODEL: "scripted",
    VADEMECUM_EXTRACTION_DAILY: String(extractionDaily),
  };
  beforeAll(async () => {
    const file = join(mkdtempSync(join(tmpdir(), "vademecum-rules-")), "rules.json");
    writeFileSync(file, JSON.stringify(rules));
    model = spawn(".venv/bin/python", ["-m", "server.scripted_llm", file], {
      env: { ...process.env, PYTHONPATH: "tests:server" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    settings["VADEMECUM_ASSISTANT_URL"] = await new Promise((resolve) =>
      createInterface({ input: model.stdout! }).once("line", resolve),
    );
  });
  afterAll(() => void model?.kill());
  withOwnServer(settings);
}
