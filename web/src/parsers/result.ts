/** The result of a parser: parts of text with their pages and sections, or an error with a code. */

import type { Part } from "../core/documents/chunking.ts";

export type { Part } from "../core/documents/chunking.ts";

/** The extracted text of a file. `pageCount` includes pages without text. */
export interface Parsed {
  mimeType: string;
  pageCount?: number;
  parts: Part[];
}

/** Callback that receives the number of parsed pages and the number of all pages. */
export type Progress = (stage: string, done: number, total: number) => void;

export type Parse = (data: Uint8Array<ArrayBuffer>, onProgress: Progress) => Parsed | Promise<Parsed>;

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

/** Limits for files. They are equal to the server's limits, so that the app and the server accept the same files. */
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

/** Codes of the reasons why a file cannot be read here. The messages for users are in ui/documents/uploadText.ts. */
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

/** Error that is thrown if a file cannot be read. The message is the code, so it contains no text of the file. */
export class Unreadable extends Error {
  constructor(readonly code: Code) {
    super(code);
  }
}

/**
 * Throw the error for a parser that is not on this device and could not be downloaded. Its code leaves the file to the
 * server, which can parse it.
 */
export function throwNotLoaded(): never {
  throw new Unreadable("NEEDS_SERVER");
}

/** Pattern of the messages with which JavaScript engines report that memory is exhausted. */
const OUT_OF_MEMORY = /allocation failed|out of memory|invalid (array|string|typed array) (buffer )?length/iu;

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && OUT_OF_MEMORY.test(error.message);
}

/** Return a part. Undefined fields are omitted, because stored rows are compared field by field. */
export function part(
  text: string,
  location: { page?: number | undefined; section?: string | undefined } = {},
): Part {
  const { page, section } = location;
  return { text, ...(page === undefined ? {} : { page }), ...(section === undefined ? {} : { section }) };
}

/** Merge adjacent parts of the same section. */
export function mergeSections(parts: readonly Part[]): Part[] {
  const runs: Part[][] = [];
  for (const next of parts) {
    const run = runs.at(-1);
    if (run && run[0]!.section === next.section) run.push(next);
    else runs.push([next]);
  }
  return runs.map((run) => part(run.map(({ text }) => text).join("\n\n"), { section: run[0]!.section }));
}
