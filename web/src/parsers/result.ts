/** What a parser gives: stretches of text that know their page and section; or a clear reason why there is none. */

import type { Part } from "../core/documents/chunking.ts";

export type { Part } from "../core/documents/chunking.ts";

/** As the server's Parsed. `pageCount` counts blank pages too. */
export interface Read {
  mimeType: string;
  pageCount?: number;
  parts: Part[];
}

/** Hears how far a parser is: `done` of `total` pages. */
export type Progress = (stage: string, done: number, total: number) => void;

export type Parse = (data: Uint8Array<ArrayBuffer>, tell: Progress) => Read | Promise<Read>;

const OFFICE = "application/vnd.openxmlformats-officedocument.";
export const PDF = "application/pdf";
export const DOCX = `${OFFICE}wordprocessingml.document`;
export const PPTX = `${OFFICE}presentationml.presentation`;
export const XLSX = `${OFFICE}spreadsheetml.sheet`;
export const ODT = "application/vnd.oasis.opendocument.text";
export const EPUB = "application/epub+zip";
export const RTF = "text/rtf";
export const HTML = "text/html";
export const MARKDOWN = "text/markdown";
export const JSON_TEXT = "application/json";
export const CSV = "text/csv";
export const TSV = "text/tab-separated-values";

/** The server's own bounds: a file that one of them reads is not refused by the other. */
export const LIMITS = {
  seconds: 60,
  expansionBytes: 200 * 2 ** 20,
  expansionRatio: 200,
  members: 10_000,
  textChars: 20_000_000,
  parts: 200_000,
  pages: 5000,
  cells: 2_000_000,
};

/** Why there is no text; the sentences are in ui/words/unreadable.ts. */
export type Code =
  | "UNSUPPORTED_TYPE"
  | "NO_TEXT"
  | "GARBLED"
  | "ENCRYPTED"
  | "DAMAGED"
  | "TOO_EXPANSIVE"
  | "PARSE_TIMEOUT"
  | "PARSE_MEMORY"
  | "EMPTY"
  | "NEEDS_SERVER";

/** No text can be had. `code` is stable, and all that is said: nothing of the file stands in it. */
export class Unreadable extends Error {
  constructor(readonly code: Code) {
    super(code);
  }
}

/** What reads this file is not on this device and could not be fetched. The server has it. */
export function unloaded(): never {
  throw new Unreadable("NEEDS_SERVER");
}

/** What engines say when there is no memory left. */
const NO_MEMORY = /allocation failed|out of memory|invalid (array|string|typed array) (buffer )?length/iu;

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && NO_MEMORY.test(error.message);
}

/** A part, without the fields that it has not: rows are compared. */
export function part(
  text: string,
  place: { page?: number | undefined; section?: string | undefined } = {},
): Part {
  const { page, section } = place;
  return { text, ...(page === undefined ? {} : { page }), ...(section === undefined ? {} : { section }) };
}

/** Neighbours of one section as one part. */
export function joined(parts: readonly Part[]): Part[] {
  const runs: Part[][] = [];
  for (const one of parts) {
    const run = runs.at(-1);
    if (run && run[0]!.section === one.section) run.push(one);
    else runs.push([one]);
  }
  return runs.map((run) => part(run.map(({ text }) => text).join("\n\n"), { section: run[0]!.section }));
}
