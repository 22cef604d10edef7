/** Scan the bytes of a Chromium profile for text that must be erased. */

import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const DIGITS = 64;
const PIECE = 16;

/** Return random digits, which LevelDB cannot compress. */
export function canary(): string {
  return Array.from({ length: DIGITS }, () => randomInt(10)).join("");
}

/** Return the files of a profile that contain a canary or a quarter of one, as Latin-1 or UTF-16. */
export function filesWith(profile: string, canaries: readonly string[]): string[] {
  const needles = canaries.flatMap((digits) =>
    [0, 1, 2, 3].flatMap((quarter) => {
      const piece = digits.slice(quarter * PIECE, (quarter + 1) * PIECE);
      return [Buffer.from(piece, "latin1"), Buffer.from(piece, "utf16le")];
    }),
  );
  return filesIn(profile).filter((path) => {
    const bytes = readFileSync(path);
    return needles.some((needle) => bytes.includes(needle));
  });
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
}
