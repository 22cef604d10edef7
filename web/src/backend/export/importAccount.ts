/**
 * Import an export of this app or of the server. Its rows become rows of this account; existing rows are not changed. A
 * row whose id was deleted here gets a new id, so that the deleted row stays deleted. Rows created before the last
 * "forget everything" get new creation times, because the server would reject them.
 *
 * The file is untrusted: its names are not used, its rows must match the schemas, and its sizes are limited. The whole
 * file is checked before anything is written, so nothing is imported from a truncated or damaged file.
 */

import { Unzip, UnzipInflate } from "fflate";
import { schemas } from "../../storage/schemas.ts";
import { isTombstone } from "../../storage/tombstoneRows.ts";
import { CodedError } from "../../core/errors.ts";
import { crc32 } from "../../lib/crc32.ts";
import { matchesSchema, type Schema } from "../../core/schema/jsonSchemaValidator.ts";
import { importedTurnId } from "../../core/export/importedTurnId.ts";
import { references, renameIds } from "../../core/schema/rowReferences.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { Lines, WAITING } from "../../core/export/exportLayout.ts";
import { isTimestamp } from "../../core/schema/timestamps.ts";
import { decode } from "../../core/schema/vector_codec.ts";
import type { AccountContext } from "../account/accountContext.ts";

type Name = keyof Collections;
type Row = Record<string, any>;

interface ImportResult {
  added: number;
  /** Number of rows that existed already and were not changed. */
  existing: number;
  /** Number of lines that were not imported: deleted rows, and lines that are not valid rows. */
  leftOut: number;
}

const LIMITS = { zipBytes: 2 ** 30, entries: 10_000, inflatedBytes: 2 ** 30, lineChars: 8 * 2 ** 20 };
const BATCH = 200;
const READ_BYTES = 2 ** 16; // small, because inflated data can be a thousand times as large as the bytes read
const [ENTRY_SIGNATURE, END_SIGNATURE] = [0x02014b50, 0x06054b50];
const [END_RECORD_BYTES, MAX_COMMENT_BYTES, MAX_DIRECTORY_BYTES] = [22, 65_535, 2 ** 24];
const ID = /^[A-Za-z0-9._~-]{1,100}$/u;
const TIMES = ["createdAt", "updatedAt", "lastAccessedAt"];

export async function importAccount(
  context: AccountContext,
  zip: Blob,
  limits = LIMITS,
): Promise<ImportResult> {
  if (zip.size > limits.zipBytes) throw new CodedError("ZIP_TOO_LARGE");
  const sums = await readChecksums(zip, limits);
  if (sums.size === 0) throw new CodedError("NOT_AN_EXPORT");
  for await (const _ of readLines(zip, limits, sums));
  const writer = new RowImporter(context);
  for await (const { name, lines } of readLines(zip, limits, sums)) {
    for (const line of lines) await writer.add(name, line);
  }
  await writer.flush();
  return writer.result;
}

/**
 * Return the collection whose rows a file contains, or WAITING for the file of rows that waited on the server. Return
 * undefined if the file has no rows.
 */
function rowsName(file: string): string | undefined {
  const name = file === WAITING ? WAITING : file.replace(/\.jsonl$/u, "");
  return name === WAITING || (name !== file && Object.hasOwn(schemas, name)) ? name : undefined;
}

/** Map the name of each file with rows to its CRC-32, read from the central directory of the ZIP. */
async function readChecksums(zip: Blob, limits: typeof LIMITS): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  if ((await zip.slice(0, 2).text()) !== "PK") return sums;
  const table = await readCentralDirectory(zip);
  const text = new TextDecoder();
  for (let at = 0, entries = 0; at < table.byteLength;) {
    if (++entries > limits.entries) throw new CodedError("ZIP_TOO_MANY_FILES");
    if (at + 46 > table.byteLength || table.getUint32(at, true) !== ENTRY_SIGNATURE)
      throw new CodedError("ZIP_DAMAGED");
    const [name, extra, remark] = [28, 30, 32].map((offset) => table.getUint16(at + offset, true));
    const file = text.decode(table.buffer.slice(at + 46, at + 46 + name!));
    if (rowsName(file)) sums.set(file, table.getUint32(at + 16, true));
    at += 46 + name! + extra! + remark!;
  }
  return sums;
}

/**
 * Return the central directory. Accept only an end record that directly follows its directory, because a ZIP inside
 * this ZIP has an end record, too.
 */
async function readCentralDirectory(zip: Blob): Promise<DataView<ArrayBuffer>> {
  const bytes = async (from: number, to?: number) => new DataView(await zip.slice(from, to).arrayBuffer());
  const from = Math.max(0, zip.size - END_RECORD_BYTES - MAX_COMMENT_BYTES);
  const tail = await bytes(from);
  for (let at = tail.byteLength - END_RECORD_BYTES; at >= 0; at--) {
    if (tail.getUint32(at, true) !== END_SIGNATURE) continue;
    const [size, place] = [tail.getUint32(at + 12, true), tail.getUint32(at + 16, true)];
    if (place + size !== from + at) continue;
    if (size > MAX_DIRECTORY_BYTES) throw new CodedError("ZIP_TOO_MANY_FILES");
    return bytes(place, place + size);
  }
  throw new CodedError("ZIP_CUT_OFF");
}

interface ImportedLines {
  /** Name of a collection, or WAITING. */
  name: string;
  lines: string[];
}

async function* readLines(
  zip: Blob,
  limits: typeof LIMITS,
  sums: ReadonlyMap<string, number>,
): AsyncGenerator<ImportedLines> {
  let heard: ImportedLines[] = [];
  let entries = 0;
  let inflated = 0;
  const left = new Map(sums);
  const unzip = new Unzip((file) => {
    if (++entries > limits.entries) throw new CodedError("ZIP_TOO_MANY_FILES");
    const name = rowsName(file.name);
    if (!name) return;
    const lines = new Lines(limits.lineChars);
    const text = new TextDecoder();
    let sum = 0;
    file.ondata = (error, data, final) => {
      if (error) throw error;
      inflated += data.length;
      if (inflated > limits.inflatedBytes) throw new CodedError("ZIP_INFLATES");
      sum = crc32(data, sum);
      heard.push({ name, lines: lines.feed(text.decode(data, { stream: !final })) });
      if (!final) return;
      heard.push({ name, lines: lines.end() });
      if (left.get(file.name) !== sum) throw new CodedError("ZIP_DAMAGED");
      left.delete(file.name);
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  for (let at = 0; at < zip.size; at += READ_BYTES) {
    const piece = new Uint8Array(await zip.slice(at, at + READ_BYTES).arrayBuffer());
    try {
      unzip.push(piece, at + READ_BYTES >= zip.size);
    } catch (error) {
      if (error instanceof CodedError) throw error;
      throw new CodedError("ZIP_DAMAGED", { cause: error });
    }
    yield* heard;
    heard = [];
  }
  if (left.size > 0) throw new CodedError("ZIP_DAMAGED");
}

/** Validates rows and inserts them in batches. */
class RowImporter {
  readonly result: ImportResult = { added: 0, existing: 0, leftOut: 0 };
  readonly #context: AccountContext;
  readonly #newIds = new Map<string, string>();
  #collection: Name | undefined;
  #rows: Row[] = [];

  constructor(context: AccountContext) {
    this.#context = context;
  }

  async add(name: string, line: string): Promise<void> {
    if (!line.trim()) return;
    const [collection, row] = parseLine(name, line);
    if (!collection || !row || row["_deleted"]) return void this.result.leftOut++;
    delete row["_deleted"]; // false in the server's export, and not a field of the schemas
    delete row["syncError"];
    if (collection === "documents") row["userId"] = this.#context.account.userId;
    const isSound = ID.test(row["id"]) && TIMES.every((name) => !(name in row) || isTimestamp(row[name]));
    if (!isSound || !matchesSchema(row, schemas[collection] as Schema) || !hasValidVectors(row)) {
      return void this.result.leftOut++;
    }
    const { forgottenAt = "" } = this.#context.account;
    if (row["createdAt"] < forgottenAt) row["createdAt"] = row["updatedAt"] = this.#context.creationTime();
    if (this.#collection !== collection || this.#rows.length === BATCH) await this.flush();
    this.#collection = collection;
    this.#rows.push(row);
  }

  /** Insert the pending rows. */
  async flush(): Promise<void> {
    const [collection, rows] = [this.#collection, this.#rows];
    this.#rows = [];
    if (!collection || rows.length === 0) return;
    await this.#renameDeleted(rows.flatMap((row) => references(collection, row)));
    const rename = (target: Name, id: string) => this.#newIds.get(`${target}/${id}`) ?? id;
    const given = new Map(rows.map((row) => [row["id"], row]));
    const all = [...given.values()].map((row) => renameIds(collection, row, rename));
    const alive = await this.#context.database[collection].findByIds(all.map(({ id }) => id)).exec();
    const fresh = all.filter(({ id }) => !alive.has(id));
    if (collection === "episodes") await this.#recordImported(fresh);
    const { success, error } = await (this.#context.database[collection] as any).bulkInsert(fresh);
    this.result.added += success.length;
    // RxDB rejects rows that the sync has added since the lookup.
    this.result.existing += alive.size + rows.length - all.length + error.length;
  }

  /**
   * Record finished turns before they are pushed, so that the server does not extract memories from them: the export
   * already contains these memories.
   */
  async #recordImported(turns: Row[]): Promise<void> {
    const { account, device } = this.#context;
    const { userId } = account;
    const over = turns.filter(({ status }) => status === "done" || status === "stopped");
    await device.imported.bulkPut(
      over.map((turn) => ({ id: importedTurnId(userId, turn), userId, at: this.#context.creationTime() })),
    );
  }

  /**
   * Choose a new id for each of `ids` that belongs to a deleted row. `flush` replaces the old id in all rows and
   * references.
   */
  async #renameDeleted(ids: [Name, string][]): Promise<void> {
    for (const [collection, id] of ids) {
      const key = `${collection}/${id}`;
      if (this.#newIds.has(key)) continue;
      let name = id;
      for (let n = 2; await isTombstone(this.#context.database[collection], name); n++) name = `${id}~${n}`;
      this.#newIds.set(key, name);
    }
  }
}

/** Return whether a row has no vectors, or exactly one vector per chunk. */
function hasValidVectors({ embedding, dims, chunks }: Row): boolean {
  if (typeof embedding !== "string") return true;
  try {
    return decode(embedding, dims).length === dims * chunks.length;
  } catch {
    return false;
  }
}

function parseLine(name: string, line: string): [Name, Row] | [] {
  try {
    const value = JSON.parse(line);
    const [collection, row] = name === WAITING ? [value.collection, value.row] : [name, value];
    if (!Object.hasOwn(schemas, collection) || typeof row !== "object" || row === null) return [];
    return [collection, row];
  } catch {
    return [];
  }
}
