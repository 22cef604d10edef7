/** Detect the type of a file from its bytes. The filename is used only to distinguish kinds of plain text. */

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
import { readDirectory, unpack } from "./zip.ts";

/** For each type of Office file: the usual name of the main member, its content type, and the MIME type of the file. */
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
/** Signature of old Office files, and of new Office files that are encrypted. */
const OLD_OFFICE = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
const DECLARATION = /\s*(?:<\?xml[^>]*>\s*)?/iuy;
const HTML_START = /\s*<(?:!doctype\s+html|html|head|body)\b/iuy;
const HEAD = 65_536;

/** Return the MIME type of a file. Throw Unreadable if no parser supports the file. */
export function sniff(data: Uint8Array, filename: string): string {
  const head = latin1(data.subarray(0, 1024));
  if (isPdf(data, head)) return PDF;
  if (head.startsWith("PK\x03\x04") || head.startsWith("PK\x05\x06")) return archive(data);
  if (head.startsWith("{\\rtf")) return RTF;
  if (head.startsWith(OLD_OFFICE)) {
    const isEncrypted = latin1(data).includes([..."Encrypt"].join("\0"));
    throw new Unreadable(isEncrypted ? "ENCRYPTED" : "UNSUPPORTED_TYPE");
  }
  return plain(data, filename);
}

/** Return whether a file is a PDF: `%PDF-` is in `head`, and the file is not a text that mentions it. */
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
  const members = readDirectory(data);
  if ([...members.values()].some(({ encrypted }) => encrypted)) throw new Unreadable("ENCRYPTED");
  const mimetype = members.get("mimetype");
  if (mimetype && mimetype.size < 200) {
    const mimeType = latin1(unpack(data, mimetype)).trim();
    if (mimeType === EPUB || mimeType === ODT) return mimeType;
  }
  const names = [...members.keys()];
  const typesMember = members.get(TYPES);
  const types = typesMember && typesMember.size < 2 ** 20 ? latin1(unpack(data, typesMember)) : "";
  for (const [mainName, contentType, mimeType] of OOXML)
    if (names.some((name) => mainName.test(name)) || types.includes(contentType)) return mimeType;
  throw new Unreadable("UNSUPPORTED_TYPE");
}

function plain(data: Uint8Array, filename: string): string {
  if (!data.some((byte) => byte !== 32 && (byte < 9 || byte > 13))) throw new Unreadable("EMPTY");
  const text = decode(data);
  if (startsWithHtml(text.slice(0, HEAD))) return HTML;
  const ending = /[^/\\]\.([^./\\]*)$/u.exec(filename)?.[1]?.toLowerCase() ?? "";
  const start = text.trimStart();
  // A page may begin with any tag, so the ending decides.
  if (MARKUP_ENDINGS.includes(ending) && start.startsWith("<")) return HTML;
  if (Object.hasOwn(BY_ENDING, ending)) return BY_ENDING[ending]!;
  return (start.startsWith("{") || start.startsWith("[")) && isJson(text) ? JSON_TEXT : "text/plain";
}

/** Return whether a text starts with HTML after any number of comments. A loop skips them without backtracking. */
function startsWithHtml(text: string): boolean {
  DECLARATION.lastIndex = 0;
  DECLARATION.test(text);
  let position = DECLARATION.lastIndex;
  for (;;) {
    while (/\s/u.test(text[position] ?? "")) position++;
    if (!text.startsWith("<!--", position)) break;
    const end = text.indexOf("-->", position + 4);
    if (end < 0) return false;
    position = end + 3;
  }
  HTML_START.lastIndex = position;
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
