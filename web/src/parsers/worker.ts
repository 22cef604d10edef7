/** The worker that reads one file. Only the parser that the file needs is loaded. */

import type { Message, Request } from "./workerMessages.ts";
import {
  CSV,
  DOCX,
  EPUB,
  HTML,
  isOutOfMemory,
  JSON_TEXT,
  LIMITS,
  MARKDOWN,
  ODT,
  PDF,
  PPTX,
  RTF,
  TSV,
  unloaded,
  Unreadable,
  XLSX,
  type Code,
  type Parse,
  type Read,
} from "./result.ts";
import { sniff } from "./file_type.ts";
import { parseCsv, parseJson, parseMarkdown, parsePlain, parseTsv } from "./formats/text.ts";

const PARSERS: Record<string, () => Promise<{ parse: Parse }>> = {
  [PDF]: () => import("./formats/pdf.ts"),
  [DOCX]: () => import("./formats/ooxml/docx.ts"),
  [PPTX]: () => import("./formats/ooxml/pptx.ts"),
  [XLSX]: () => import("./formats/ooxml/xlsx.ts"),
  [ODT]: () => import("./formats/odt.ts"),
  [EPUB]: () => import("./formats/epub.ts"),
  [HTML]: () => import("./formats/html.ts"),
  [RTF]: () => import("./formats/rtf.ts"),
  [MARKDOWN]: async () => ({ parse: parseMarkdown }),
  [JSON_TEXT]: async () => ({ parse: parseJson }),
  [CSV]: async () => ({ parse: parseCsv }),
  [TSV]: async () => ({ parse: parseTsv }),
};

async function parsed({ name, bytes }: Request): Promise<Read> {
  const data = new Uint8Array(bytes);
  const kind = sniff(data, name);
  const loaded = await PARSERS[kind]?.().catch(unloaded);
  const parse: Parse = loaded?.parse ?? ((data) => parsePlain(data, kind));
  const read = await parse(data, (stage, done, total) => send({ kind: "progress", stage, done, total }));
  const characters = read.parts.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > LIMITS.textChars || read.parts.length > LIMITS.parts)
    throw new Unreadable("TOO_EXPANSIVE");
  if (!read.parts.some(({ text }) => text.trim())) throw new Unreadable("EMPTY");
  return read;
}

/** The code for what went wrong. The errors of libraries are many. */
function codeOf(error: unknown): Code {
  if (error instanceof Unreadable) return error.code;
  return isOutOfMemory(error) ? "PARSE_MEMORY" : "DAMAGED";
}

function send(message: Message): void {
  self.postMessage(message);
}

self.addEventListener("message", ({ data }: MessageEvent<Request>) => {
  send({ kind: "progress", stage: "reading", done: 0, total: 0 });
  parsed(data).then(
    (read) => send({ kind: "read", read }),
    (error: unknown) => send({ kind: "refused", code: codeOf(error) }),
  );
});
