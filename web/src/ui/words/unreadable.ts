/** Why a file cannot be read: the server's sentences (server/vademecum/engines/files/result.py). */

import type { Code } from "../../parsers/result.ts";

export const unreadable: Record<Exclude<Code, "NEEDS_SERVER">, string> = {
  UNSUPPORTED_TYPE:
    "This kind of file cannot be read. Nothing was stored. PDF, Word, PowerPoint, Excel, " +
    "OpenDocument text (ODT), HTML, Markdown, CSV, JSON, RTF, EPUB, plain text and source code can.",
  NO_TEXT: "This PDF holds pictures of pages, not text, so there is nothing to search. Nothing was stored.",
  GARBLED: "The text inside this file is scrambled: it cannot be read as words. Nothing was stored.",
  ENCRYPTED: "This file is locked with a password. Nothing was stored. Save it without one and try again.",
  DAMAGED: "This file is damaged and cannot be read. Nothing was stored.",
  TOO_EXPANSIVE: "This file unpacks to more than can be read safely. Nothing was stored.",
  PARSE_TIMEOUT: "Reading this file took too long. Nothing was stored.",
  PARSE_MEMORY: "Reading this file needed too much memory. Nothing was stored.",
  EMPTY: "There is no text in this file. Nothing was stored.",
};
