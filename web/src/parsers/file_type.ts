/** What is this file? The bytes decide; the name only tells kinds of plain text apart. */

import { directory, unpack } from "./formats/ooxml/zip_container.ts";
import { decode, latin1 } from "./charset/detect.ts";
import {
  CSV,
  DOCX,
  EPUB,
  HTML,
  JSON_TEXT,
  MARKDOWN,
  ODT,
  PDF,
  PPTX,
  RTF,
  TSV,
  Unreadable,
  XLSX,
} from "./result.ts";

/** The kinds of Office files, by the name of the main member or by its content type if it has another name. */
const OOXML = [
  [/^word\/document\d*\.xml$/iu, "wordprocessingml.document.main+xml", DOCX],
  [/^ppt\/presentation\.xml$/iu, "presentationml.presentation.main+xml", PPTX],
  [/^xl\/workbook\.xml$/iu, "spreadsheetml.sheet.main+xml", XLSX],
] as const;
const TYPES = "[Content_Types].xml";
const BY_ENDING: Record<string, string> = {
  ...{ md: MARKDOWN, markdown: MARKDOWN, csv: CSV, tsv: TSV },
  ...{ jsonl: JSON_TEXT, ndjson: JSON_TEXT },
};
const MARKUP_ENDINGS = ["html", "htm", "xhtml"];
const PDF_END = /startxref\s+\d+\s+%%EOF\s*$/u;
const OLD_OFFICE = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"; // or an encrypted new one
const DECLARATION = /\s*(?:<\?xml[^>]*>\s*)?/iuy;
const HTML_START = /\s*<(?:!doctype\s+html|html|head|body)\b/iuy;
const HEAD = 65_536;

/** The MIME type. Throws Unreadable for what has no parser. */
export function sniff(data: Uint8Array, filename: string): string {
  const head = latin1(data.subarray(0, 1024));
  if (isPdf(data, head)) return PDF;
  if (head.startsWith("PK\x03\x04") || head.startsWith("PK\x05\x06")) return archive(data);
  if (head.startsWith("{\\rtf")) return RTF;
  if (head.startsWith(OLD_OFFICE)) {
    const locked = latin1(data).includes([..."Encrypt"].join("\0"));
    throw new Unreadable(locked ? "ENCRYPTED" : "UNSUPPORTED_TYPE");
  }
  return plain(data, filename);
}

/** The mark may stand anywhere in the first 1,024 bytes; but a text may speak of it. */
function isPdf(data: Uint8Array, head: string): boolean {
  if (!head.includes("%PDF-")) return false;
  const first = head.replace(/^\xef\xbb\xbf/u, "").trimStart();
  return first.startsWith("%PDF-") || PDF_END.test(latin1(data.subarray(-1024))) || !isText(data);
}

function isText(data: Uint8Array): boolean {
  try {
    decode(data);
    return true;
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
}

function archive(data: Uint8Array): string {
  const members = directory(data);
  if ([...members.values()].some(({ encrypted }) => encrypted)) throw new Unreadable("ENCRYPTED");
  const mimetype = members.get("mimetype");
  if (mimetype && mimetype.size < 200) {
    const kind = latin1(unpack(data, mimetype)).trim();
    if (kind === EPUB || kind === ODT) return kind;
  }
  const names = [...members.keys()];
  const listed = members.get(TYPES);
  const types = listed && listed.size < 2 ** 20 ? latin1(unpack(data, listed)) : "";
  for (const [main, type, kind] of OOXML)
    if (names.some((name) => main.test(name)) || types.includes(type)) return kind;
  throw new Unreadable("UNSUPPORTED_TYPE");
}

function plain(data: Uint8Array, filename: string): string {
  if (!data.some((byte) => byte !== 32 && (byte < 9 || byte > 13))) throw new Unreadable("EMPTY");
  const text = decode(data);
  if (beginsLikeHtml(text.slice(0, HEAD))) return HTML;
  const ending = /[^/\\]\.([^./\\]*)$/u.exec(filename)?.[1]?.toLowerCase() ?? "";
  const start = text.trimStart();
  if (MARKUP_ENDINGS.includes(ending) && start.startsWith("<")) return HTML; // a page may begin with any tag
  if (Object.hasOwn(BY_ENDING, ending)) return BY_ENDING[ending]!;
  return (start.startsWith("{") || start.startsWith("[")) && isJson(text) ? JSON_TEXT : "text/plain";
}

/** Behind any number of remarks. They are stepped over one by one: no way to split them is tried twice. */
function beginsLikeHtml(text: string): boolean {
  DECLARATION.lastIndex = 0;
  DECLARATION.test(text);
  let at = DECLARATION.lastIndex;
  for (;;) {
    while (/\s/u.test(text[at] ?? "")) at++;
    if (!text.startsWith("<!--", at)) break;
    const end = text.indexOf("-->", at + 4);
    if (end < 0) return false;
    at = end + 3;
  }
  HTML_START.lastIndex = at;
  return HTML_START.test(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
