/** The worker that parses one file. It loads only the parser for the format of the file. */

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
  throwNotLoaded,
  Unreadable,
  XLSX,
  type Code,
  type Parse,
  type Parsed,
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

async function parseFile({ name, bytes }: Request): Promise<Parsed> {
  const data = new Uint8Array(bytes);
  const mimeType = sniff(data, name);
  const parser = await PARSERS[mimeType]?.().catch(throwNotLoaded);
  const parse: Parse = parser?.parse ?? ((data) => parsePlain(data, mimeType));
  const parsed = await parse(data, (stage, done, total) => send({ kind: "progress", stage, done, total }));
  const characters = parsed.parts.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > LIMITS.textChars || parsed.parts.length > LIMITS.parts)
    throw new Unreadable("TOO_EXPANSIVE");
  if (!parsed.parts.some(({ text }) => text.trim())) throw new Unreadable("EMPTY");
  return parsed;
}

/** Return the code of an error. An unknown error of a library counts as a damaged file. */
function codeOf(error: unknown): Code {
  if (error instanceof Unreadable) return error.code;
  return isOutOfMemory(error) ? "PARSE_MEMORY" : "DAMAGED";
}

function send(message: Message): void {
  self.postMessage(message);
}

self.addEventListener("message", ({ data }: MessageEvent<Request>) => {
  send({ kind: "progress", stage: "reading", done: 0, total: 0 });
  parseFile(data).then(
    (parsed) => send({ kind: "parsed", parsed }),
    (error: unknown) => send({ kind: "failed", code: codeOf(error) }),
  );
});
