/**
 * Stored browser profiles: the IndexedDB and Local Storage folders of Chromium, as a version of the app left them.
 *
 * Both contain the origin of the app. The app is therefore served under a fixed origin, whatever port the server has.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { harness } from "./app.ts";
import type { BrowserOptions } from "./browser.ts";

export const ORIGIN = "http://vademecum.localhost";

/** Facts about a stored profile. */
export interface Stored {
  userId: string;
  /** The session with an unsent draft. */
  draftPath: string;
}

const FOLDERS = ["IndexedDB", "Local Storage"];
const ABOUT = "about.json";

/** Return the options of a browser with a profile on disk that resolves `ORIGIN` to the server. */
export function atOrigin(): BrowserOptions {
  const { host } = new URL(harness.url);
  return { processArguments: [`--host-resolver-rules=MAP vademecum.localhost:80 ${host}`], origin: ORIGIN };
}

/** Archive a closed profile without Chromium's logs and lock files. */
export function store(profile: string, archive: string, about: Stored): void {
  const folder = join(profile, "Default");
  writeFileSync(join(folder, ABOUT), JSON.stringify(about));
  const others = ["--exclude=LOG", "--exclude=LOG.old", "--exclude=LOCK"];
  execFileSync("tar", ["-czf", archive, "-C", folder, ...others, ABOUT, ...FOLDERS]);
}

/** Unpack an archive into a profile that a browser has not opened yet. */
export function unpack(archive: string): { profile: string; about: Stored } {
  const profile = mkdtempSync(join(tmpdir(), "vademecum-chromium-"));
  const folder = join(profile, "Default");
  mkdirSync(folder);
  execFileSync("tar", ["-xzf", archive, "-C", folder]);
  const about = JSON.parse(readFileSync(join(folder, ABOUT), "utf8")) as Stored;
  rmSync(join(folder, ABOUT));
  return { profile, about };
}
