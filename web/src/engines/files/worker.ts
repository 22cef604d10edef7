/** The worker that reads one file. Only the parser that the file needs is loaded. */

import type { Message, Request } from "./messages.ts";
import {
  DOCX,
  EPUB,
  HTML,
  isOutOfMemory,
  LIMITS,
  MARKDOWN,
  ODT,
  PDF,
  PPTX,
  RTF,
  Unreadable,
  XLSX,
  type Code,
  type Parse,
  type Read,
} from "./parsed.ts";
import { sniff } from "./sniff.ts";
import { parseMarkdown, parsePlain } from "./text.ts";

const PARSERS: Record<string, () => Promise<Parse>> = {
  [PDF]: async () => (await import("./pdf.ts")).parse,
  [DOCX]: async () => (await import("./word.ts")).parse,
  [PPTX]: async () => (await import("./slides.ts")).parse,
  [XLSX]: async () => (await import("./workbook.ts")).parse,
  [ODT]: async () => (await import("./odt.ts")).parse,
  [EPUB]: async () => (await import("./epub.ts")).parse,
  [HTML]: async () => (await import("./html.ts")).parse,
  [RTF]: async () => (await import("./rtf.ts")).parse,
  [MARKDOWN]: async () => parseMarkdown,
};

async function parsed({ name, bytes }: Request): Promise<Read> {
  const data = new Uint8Array(bytes);
  const kind = sniff(data, name);
  const parse: Parse = (await PARSERS[kind]?.()) ?? ((data) => parsePlain(data, kind));
  const read = await parse(data, (stage, done, total) => send({ kind: "progress", stage, done, total }));
  if (read.parts.reduce((sum, { text }) => sum + text.length, 0) > LIMITS.textChars)
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
