/** PDF: a part a page, with what was filled in below what is printed. A file of pictures, or one whose letters have no names, is refused, not stored as if it were text. */

import { unzipSync } from "fflate";
import {
  getDocument,
  InvalidPDFException,
  PasswordException,
  VerbosityLevel,
  type PDFDocumentProxy,
} from "pdfjs-dist/legacy/build/pdf.mjs";
// Its other half finds itself in a worker and stays there: pdf.js then starts none of its own.
import "pdfjs-dist/legacy/build/pdf.worker.mjs";
import type { TextItem } from "pdfjs-dist/types/src/display/api";
import TABLES from "./cmaps.zip?url";
import { isOutOfMemory, LIMITS, part, PDF, Unreadable, type Progress, type Read } from "../result.ts";

const GARBLED_SHARE = 0.2;
const GAP = 0.1; // of the letters' size; narrower ones part letters, not words
const BLANK = /\s/u;
/** A word that goes on in small letters was divided, unless it is written with its hyphen elsewhere. */
const DIVIDED = /(?<=\p{L})[-\u2010]\n(?=\p{Ll})/gu;
// Bounded, and begun where a word begins: of letters without an end every one would else be looked at from every other.
const DIVIDED_WORD =
  /(?<![\p{L}\p{N}])([\p{L}\p{N}]{0,39}\p{L})[-\u2010]\n(\p{Ll}[\p{L}\p{N}]{0,39})(?![\p{L}\p{N}])/gu;
const HYPHENATED = /(?<![\p{L}\p{N}])[\p{L}\p{N}]{1,40}-[\p{L}\p{N}]{1,40}(?![\p{L}\p{N}])/gu;
const ODD = /[\p{Cc}\p{Co}\p{Cn}\p{Cs}\ufffd]/gu;

/**
 * What the letters of Chinese, Japanese and Korean fonts mean: 168 tables in one file of our own origin (see
 * web/build.mjs), fetched where a page first needs one.
 */
let tables: Promise<Uint8Array> | undefined;

async function fetched(): Promise<Uint8Array> {
  const answer = await fetch(TABLES);
  if (!answer.ok) throw new Error(`The tables of letters: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Those that could not be had: pdf.js goes on without them, but the words would be others. */
const missing = new Set<string>();

class OwnFiles {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    if (kind !== "cMapUrl") throw new Error(`There is no ${filename}.`); // words need no fonts
    missing.add(filename);
    const archive = await (tables ??= fetched());
    const table = unzipSync(archive, { filter: ({ name }) => name === filename })[filename];
    missing.delete(filename);
    if (!table) throw new Error(`There is no ${filename}.`);
    return table;
  }
}

export async function parse(data: Uint8Array<ArrayBuffer>, tell: Progress): Promise<Read> {
  const document = await opened(data);
  const pageCount = document.numPages;
  if (pageCount < 1) throw new Unreadable("NEEDS_SERVER"); // it counts its pages wrongly; the server looks for them
  if (pageCount > LIMITS.pages) throw new Unreadable("TOO_EXPANSIVE");
  const pages: string[] = [];
  for (let page = 1; page <= pageCount; page++) {
    const text = await textOf(document, page);
    if (missing.size > 0) throw new Unreadable("NEEDS_SERVER");
    pages.push(text);
    tell("reading", page, pageCount);
  }
  const hyphenated = new Set(pages.flatMap((text) => text.toLowerCase().match(HYPHENATED) ?? []));
  const parts = pages
    .map((text, at) => part(undivided(text, hyphenated), { page: at + 1 }))
    .filter(({ text }) => text.trim());
  refuseWordless(parts.map(({ text }) => text).join(""));
  return { mimeType: PDF, parts, pageCount };
}

async function opened(data: Uint8Array<ArrayBuffer>): Promise<PDFDocumentProxy> {
  const loading = getDocument({
    data,
    cMapUrl: "cmaps/", // only its name: OwnFiles knows the places
    BinaryDataFactory: OwnFiles,
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
  let filled;
  try {
    const page = await document.getPage(number);
    items = (await page.getTextContent()).items;
    filled = ((await page.getAnnotations()) as Field[]).map(filledIn).filter((said) => said.trim());
    page.cleanup();
  } catch (error) {
    if (isOutOfMemory(error)) throw error;
    return ""; // one broken page does not cost the others
  }
  return [joinedRuns(items.filter((item) => "str" in item)), ...filled].join("\n");
}

/** Of a note on a page, which may be a field of its form, what this looks at. */
interface Field {
  fieldType?: "Tx" | "Ch" | "Btn" | "Sig";
  fieldValue?: string | string[] | null;
  password?: boolean;
  hidden?: boolean;
}

function filledIn({ fieldType, fieldValue, password, hidden }: Field): string {
  if (password || hidden || (fieldType !== "Tx" && fieldType !== "Ch")) return "";
  const said = Array.isArray(fieldValue) ? fieldValue[0] : fieldValue;
  return (said ?? "").replace(/\r\n?/gu, "\n");
}

/** Runs of letters as lines. Words are apart that stand apart, whether or not a blank was drawn between them. */
function joinedRuns(runs: readonly TextItem[]): string {
  let text = "";
  let last: TextItem | undefined;
  for (const run of runs) {
    const touches = !BLANK.test(text.at(-1) ?? " ") && !BLANK.test(run.str[0] ?? " ");
    if (last && touches && standApart(last, run)) text += " ";
    text += run.str + (run.hasEOL ? "\n" : "");
    if (run.str.trim()) last = run;
  }
  return text;
}

function undivided(text: string, hyphenated: ReadonlySet<string>): string {
  const kept = text.replace(DIVIDED_WORD, (as, first: string, rest: string) => {
    const whole = `${first}-${rest}`;
    return hyphenated.has(whole.toLowerCase()) ? whole : as;
  });
  return kept.replace(DIVIDED, "");
}

/** Is there a gap, or a jump back, from where one run ends to where the next begins? Along the line, however it is turned. */
function standApart(one: TextItem, next: TextItem): boolean {
  const [cos, sin, , , x, y] = one.transform as number[] as [number, number, number, number, number, number];
  const size = Math.hypot(cos, sin) || 1;
  const [right, up] = [next.transform[4] - x, next.transform[5] - y];
  const gap = (right * cos + up * sin) / size - one.width;
  return gap > GAP * size || gap < -size;
}

/** Letters without names are asked for first: they are no letters, and yet no picture. */
function refuseWordless(text: string): void {
  const visible = text.slice(0, 500_000).replace(/\s/gu, "");
  const odd = visible.match(ODD)?.length ?? 0;
  if (odd > Math.max(2, visible.length * GARBLED_SHARE)) throw new Unreadable("GARBLED");
  if ((text.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < 3) throw new Unreadable("NO_TEXT");
}
