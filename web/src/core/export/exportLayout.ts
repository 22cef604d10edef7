/**
 * File names and README of an export. Rows and texts have the same file names as in the server's exports
 * (services/data/export.py).
 */

export const WAITING = "waiting.jsonl";
const NAME_BYTES = 120; // leaves room for the id in the 255 bytes that file systems allow for a name

export const LOST = "lost.jsonl";
export const README = `This archive contains the data of your account on this device.

account.json               your account, without secrets
<collection>.jsonl         one row per line, as your devices sync it
documents/<name>.txt       the text of each document
lost.jsonl                 your texts that a change or delete on another device replaced, one text per line
files/<number> <name>      files that are not documents yet

Not included: drafts of unsent messages, and the list of questions that wait for the assistant.

To import the rows again, choose "Import an export" in the settings. Then add the files like any other files. Or push
each row as \`newDocumentState\` to /v1/sync/<collection>/<version>/push. The \`userId\` of a document must be the id of the
account that it is pushed to.
`;

/** Return the path of the file with a document's text. */
export function textFile(filename: string, id: string): string {
  return `documents/${safe(filename)} (${id}).txt`;
}

/** Return the path of a waiting file. The number distinguishes files with the same name. */
export function waitingFile(filename: string, number: number): string {
  return `files/${number} ${safe(filename)}`;
}

/** Return a short file name without path separators and other special characters. */
function safe(filename: string): string {
  let name = filename.replace(/[^\p{L}\p{N}_. -]/gu, "_");
  const bytes = new TextEncoder();
  while (bytes.encode(name).length > NAME_BYTES) name = [...name].slice(0, -1).join("");
  return name;
}

/** Splits text that arrives in pieces into lines. Throws a RangeError if a line is too long. */
export class Lines {
  #rest = "";
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  feed(piece: string): string[] {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > this.#most || lines.some(({ length }) => length > this.#most)) {
      throw new RangeError("A line is longer than any row.");
    }
    return lines;
  }

  /** Return the last line, if the text does not end with a line break. */
  end(): string[] {
    return this.#rest ? [this.#rest] : [];
  }
}
