/**
 * Parse PDF. Each page with text becomes a part, with the values of form fields below the page's text. Throw Unreadable
 * for a file that contains only images, and for a file whose characters cannot be mapped to Unicode.
 */

import {
  getDocument,
  InvalidPDFException,
  PasswordException,
  VerbosityLevel,
  type PDFDocumentProxy,
} from "pdfjs-dist/legacy/build/pdf.mjs";
// Importing the parser of pdf.js makes it run in this worker. Otherwise pdf.js would start a worker of its own.
import "pdfjs-dist/legacy/build/pdf.worker.mjs";
import type { TextItem } from "pdfjs-dist/types/src/display/api";
import CMAPS_URL from "./cmaps.zip?url";
import { isOutOfMemory, LIMITS, part, PDF, Unreadable, type Parsed, type Progress } from "../result.ts";
import { readDirectory, unpack } from "../zip.ts";

const GARBLED_SHARE = 0.2;
/** Minimum gap between words, as a share of the font size. Narrower gaps separate letters. */
const GAP = 0.1;
const BLANK = /\s/u;
/**
 * Pattern of a hyphen at a line end before a lowercase letter. The hyphen is removed, unless the file contains the same
 * word with a hyphen in the middle of a line.
 */
const LINE_END_HYPHEN = /(?<=\p{L})[-\u2010]\n(?=\p{Ll})/gu;
// Bounded and anchored at the start of a word. Otherwise a very long run of letters would take quadratic time.
const WORD_ACROSS_LINES =
  /(?<![\p{L}\p{N}])([\p{L}\p{N}]{0,39}\p{L})[-\u2010]\n(\p{Ll}[\p{L}\p{N}]{0,39})(?![\p{L}\p{N}])/gu;
const HYPHENATED = /(?<![\p{L}\p{N}])[\p{L}\p{N}]{1,40}-[\p{L}\p{N}]{1,40}(?![\p{L}\p{N}])/gu;
const INVALID_CHARACTER = /[\p{Cc}\p{Co}\p{Cn}\p{Cs}\ufffd]/gu;

/**
 * The archive with the character maps of Chinese, Japanese and Korean fonts (see web/build.mjs). It is downloaded from
 * this app's server when a page first needs a map.
 */
let cmaps: Promise<Uint8Array> | undefined;

async function fetchCmaps(): Promise<Uint8Array> {
  const response = await fetch(CMAPS_URL);
  if (!response.ok) throw new Error(`Could not load the character maps: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Names of maps that could not be loaded. pdf.js continues without them and returns wrong text. */
const missingCmaps = new Set<string>();

class CmapReader {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    // Other files, such as fonts, are needed only for rendering.
    if (kind !== "cMapUrl") throw new Error(`There is no ${filename}.`);
    missingCmaps.add(filename);
    const archive = await (cmaps ??= fetchCmaps());
    const member = readDirectory(archive).get(filename);
    missingCmaps.delete(filename);
    if (!member) throw new Error(`There is no ${filename}.`);
    return unpack(archive, member);
  }
}

export async function parse(data: Uint8Array<ArrayBuffer>, onProgress: Progress): Promise<Parsed> {
  const document = await openDocument(data);
  const pageCount = document.numPages;
  // Without pages, the page tree is damaged, which only the server can repair.
  if (pageCount < 1) throw new Unreadable("NEEDS_SERVER");
  if (pageCount > LIMITS.pages) throw new Unreadable("TOO_EXPANSIVE");
  const pages: string[] = [];
  for (let page = 1; page <= pageCount; page++) {
    const text = await textOf(document, page);
    if (missingCmaps.size > 0) throw new Unreadable("NEEDS_SERVER");
    pages.push(text);
    onProgress("reading", page, pageCount);
  }
  const hyphenated = new Set(pages.flatMap((text) => text.toLowerCase().match(HYPHENATED) ?? []));
  const parts = pages
    .map((text, index) => part(removeLineEndHyphens(text, hyphenated), { page: index + 1 }))
    .filter(({ text }) => text.trim());
  checkHasText(parts.map(({ text }) => text).join(""));
  return { mimeType: PDF, parts, pageCount };
}

async function openDocument(data: Uint8Array<ArrayBuffer>): Promise<PDFDocumentProxy> {
  const loading = getDocument({
    data,
    cMapUrl: "cmaps/", // required, but CmapReader ignores it
    BinaryDataFactory: CmapReader,
    useWorkerFetch: false,
    useWasm: false,
    useSystemFonts: false,
    disableFontFace: true,
    disableWorkerRendering: true,
    verbosity: VerbosityLevel.ERRORS,
  } as Parameters<typeof getDocument>[0]);
  try {
    return await loading.promise;
  } catch (error) {
    if (error instanceof PasswordException) throw new Unreadable("ENCRYPTED");
    if (error instanceof InvalidPDFException) throw new Unreadable("DAMAGED");
    throw error;
  }
}

async function textOf(document: PDFDocumentProxy, number: number): Promise<string> {
  let items;
  let values;
  try {
    const page = await document.getPage(number);
    items = (await page.getTextContent()).items;
    values = ((await page.getAnnotations()) as Annotation[]).map(valueOf).filter((value) => value.trim());
    page.cleanup();
  } catch (error) {
    if (isOutOfMemory(error)) throw error;
    return ""; // skip only this page, because all others may be intact
  }
  return [joinRuns(items.filter((item) => "str" in item)), ...values].join("\n");
}

/** The properties of an annotation that may be a form field. */
interface Annotation {
  fieldType?: "Tx" | "Ch" | "Btn" | "Sig";
  fieldValue?: string | string[] | null;
  password?: boolean;
  hidden?: boolean;
}

function valueOf({ fieldType, fieldValue, password, hidden }: Annotation): string {
  if (password || hidden || (fieldType !== "Tx" && fieldType !== "Ch")) return "";
  const value = Array.isArray(fieldValue) ? fieldValue[0] : fieldValue;
  return (value ?? "").replace(/\r\n?/gu, "\n");
}

/** Join runs of text to lines. If there is a gap between two runs, add a space, which a PDF need not contain. */
function joinRuns(runs: readonly TextItem[]): string {
  let text = "";
  let previous: TextItem | undefined;
  for (const run of runs) {
    const lacksSpace = !BLANK.test(text.at(-1) ?? " ") && !BLANK.test(run.str[0] ?? " ");
    if (previous && lacksSpace && hasGap(previous, run)) text += " ";
    text += run.str + (run.hasEOL ? "\n" : "");
    if (run.str.trim()) previous = run;
  }
  return text;
}

function removeLineEndHyphens(text: string, hyphenated: ReadonlySet<string>): string {
  const withHyphens = text.replace(WORD_ACROSS_LINES, (match, first: string, rest: string) => {
    const word = `${first}-${rest}`;
    return hyphenated.has(word.toLowerCase()) ? word : match;
  });
  return withHyphens.replace(LINE_END_HYPHEN, "");
}

/**
 * Return whether there is a gap between the end of a run and the start of the next one, or a jump back. Both are
 * measured along the base line, which may be rotated.
 */
function hasGap(run: TextItem, next: TextItem): boolean {
  const [cos, sin, , , x, y] = run.transform as number[] as [number, number, number, number, number, number];
  const size = Math.hypot(cos, sin) || 1;
  const [right, up] = [next.transform[4] - x, next.transform[5] - y];
  const gap = (right * cos + up * sin) / size - run.width;
  return gap > GAP * size || gap < -size;
}

/** Throw Unreadable if too many characters are invalid, or if the document has almost no letters and digits. */
function checkHasText(text: string): void {
  const visible = text.slice(0, 500_000).replace(/\s/gu, "");
  const invalid = visible.match(INVALID_CHARACTER)?.length ?? 0;
  if (invalid > Math.max(2, visible.length * GARBLED_SHARE)) throw new Unreadable("GARBLED");
  if ((text.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < 3) throw new Unreadable("NO_TEXT");
}
