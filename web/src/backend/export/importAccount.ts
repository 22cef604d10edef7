/**
 * Import an export of this app or of the server. Its rows become rows of this account; existing rows are not changed. A
 * row whose id was deleted here gets a new id, so that the deleted row stays deleted. Rows created before the last
 * "forget everything" get new creation times, because the server would reject them.
 *
 * The file is untrusted: its names are not used, its rows must match the schemas, and its sizes are limited. The whole
 * file is checked before anything is written, so nothing is imported from a truncated or damaged file.
 */

import { schemas } from "../../storage/schemas.ts";
import { isTombstone } from "../../storage/tombstoneRows.ts";
import { CodedError } from "../../core/errors.ts";
import { matchesSchema, type Schema } from "../../core/schema/jsonSchemaValidator.ts";
import { importedTurnId } from "../../core/export/importedTurnId.ts";
import { references, renameIds } from "../../core/schema/rowReferences.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { Lines, WAITING } from "../../core/export/exportLayout.ts";
import { upgradeRow } from "../../core/schema/row_upgrades.ts";
import { isTimestamp } from "../../core/schema/timestamps.ts";
import { decode } from "../../core/schema/vector_codec.ts";
import { Unreadable } from "../../parsers/result.ts";
import { DirectoryMissing, readDirectoryOf, unpackFrom, type Member } from "../../parsers/zip.ts";
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

const LIMITS = { zipBytes: 2 ** 30, inflatedBytes: 2 ** 30, lineChars: 8 * 2 ** 20 };
const BATCH = 200;
const ID = /^[A-Za-z0-9._~-]{1,100}$/u;
const TIMES = ["createdAt", "updatedAt", "lastAccessedAt"];

export async function importAccount(context: AccountContext, zip: Blob): Promise<ImportResult> {
  if (zip.size > LIMITS.zipBytes) throw new CodedError("ZIP_TOO_LARGE");
  const files = await findRows(zip);
  if (files.length === 0) throw new CodedError("NOT_AN_EXPORT");
  for await (const _ of readLines(zip, files));
  const writer = new RowImporter(context);
  for await (const { name, lines } of readLines(zip, files)) {
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

/** A file with rows, with the name of its collection or WAITING. */
type RowsFile = [name: string, member: Member];

async function findRows(zip: Blob): Promise<RowsFile[]> {
  if ((await zip.slice(0, 2).text()) !== "PK") return [];
  const members = await readDirectoryOf(zip).catch((error: unknown) => {
    const isLarge = error instanceof Unreadable && error.code === "TOO_EXPANSIVE";
    const code = error instanceof DirectoryMissing ? "ZIP_CUT_OFF" : "ZIP_DAMAGED";
    throw new CodedError(isLarge ? "ZIP_TOO_MANY_FILES" : code, { cause: error });
  });
  return [...members].flatMap(([file, member]) => {
    const name = rowsName(file);
    return name ? [[name, member]] : [];
  });
}

async function* readLines(zip: Blob, files: readonly RowsFile[]) {
  let inflated = 0;
  try {
    for (const [name, member] of files) {
      const lines = new Lines(LIMITS.lineChars);
      const text = new TextDecoder();
      for await (const piece of unpackFrom(zip, member)) {
        inflated += piece.length;
        if (inflated > LIMITS.inflatedBytes) throw new CodedError("ZIP_INFLATES");
        yield { name, lines: lines.feed(text.decode(piece, { stream: true })) };
      }
      yield { name, lines: [...lines.feed(text.decode()), ...lines.end()] };
    }
  } catch (error) {
    throw error instanceof CodedError ? error : new CodedError("ZIP_DAMAGED", { cause: error });
  }
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
    const [collection, read] = parseLine(name, line);
    if (!collection || !read || read["_deleted"]) return void this.result.leftOut++;
    delete read["_deleted"]; // false in the server's export, and not a field of the schemas
    delete read["syncError"];
    const isCurrent = matchesSchema(read, schemas[collection] as Schema);
    const row = isCurrent ? read : upgradeRow(collection, read); // an export of an older version
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
