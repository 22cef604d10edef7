/**
 * Rows that the server rejected. They stay on this device with a `syncError` until they are retried. All rows are
 * scanned once when the account is opened; after that, changes keep the list current.
 */

import type { RxChangeEvent, RxCollection, RxDocument } from "rxdb/plugins/core";
import { auditTime, BehaviorSubject, Subject } from "rxjs";
import { editRow } from "../../storage/editRow.ts";
import { compareStrings } from "../../lib/compareStrings.ts";
import { RELATIONS } from "../../core/schema/relations.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { nameOf } from "../../core/schema/rowText.ts";
import { selectors } from "../deletion/cascade.ts";
import { childIdRange, type AccountContext } from "../account/accountContext.ts";

type Name = keyof Collections;
type Row = Record<string, any>;

export interface RejectedRow {
  collection: Name;
  /** Id of the row. For blocks, the id of their document. */
  id: string;
  name: string;
  code: string;
  /** The server's message for the user. */
  message: string;
  at: string;
  createdAt: string;
}

const UPDATE_MS = 100;

/** Return the row without its error and with `at` as the time of its last edit. */
function withoutError({ syncError, ...row }: Row, at: string): Row {
  return syncError ? { ...row, updatedAt: at } : row;
}

export class RejectedRows {
  readonly rows$ = new BehaviorSubject<RejectedRow[]>([]);
  readonly #context: AccountContext;
  readonly #rows = new Map<string, RejectedRow>();
  readonly #changed = new Subject<void>();

  constructor(context: AccountContext) {
    this.#context = context;
    this.#changed.pipe(auditTime(UPDATE_MS)).subscribe(() => void this.#publish());
    for (const [name, collection] of this.#collections()) {
      collection.$.subscribe((event: RxChangeEvent<Row>) => this.#update(name, event.documentData as Row));
    }
    void this.#scan();
  }

  /** Edit a row so that it is pushed again. A row from before a "forget everything" also gets a new creation time. */
  async retry({ collection, id }: Pick<RejectedRow, "collection" | "id">): Promise<void> {
    const selector = collection === "vectorEmbeddings" ? { id: childIdRange(id) } : { id };
    const rows = await this.#collection(collection).find({ selector }).exec();
    const at = this.#context.creationTime();
    const forgotten = rows.filter((row) => row.get("syncError")?.code === "FORGOTTEN");
    for (const row of rows)
      if (!forgotten.includes(row)) await editRow<Row>(row, (current) => withoutError(current, at));
    await this.#renew(collection, forgotten, at);
  }

  /** Give rows from before a "forget everything", and their dependents, new creation times. */
  async #renew(collection: Name, rows: readonly RxDocument<Row>[], at: string): Promise<void> {
    if (rows.length === 0) return;
    const { forgottenAt = "" } = this.#context.account;
    const isOld = ({ createdAt, syncError }: Row) =>
      createdAt < forgottenAt || syncError?.code === "FORGOTTEN";
    for (const row of rows) {
      await editRow<Row>(row, ({ syncError: _, ...fields }) => ({ ...fields, createdAt: at, updatedAt: at }));
    }
    const ids = rows.map((row) => row.primary);
    for (const relation of RELATIONS) {
      if (relation.to !== collection || relation.onDelete !== "cascade") continue;
      for (const selector of selectors(relation, ids)) {
        const children = await this.#collection(relation.of).find({ selector }).exec();
        const old = children.filter((row) => isOld(row.toJSON()));
        await this.#renew(relation.of, old, at);
      }
    }
  }

  #collection(name: Name): RxCollection<Row> {
    return this.#context.database.collections[name] as unknown as RxCollection<Row>;
  }

  async retryAll(): Promise<void> {
    for (const row of this.rows$.value.toReversed()) await this.retry(row); // retry in the order of rejection
  }

  #collections(): [Name, RxCollection][] {
    return Object.entries(this.#context.database.collections) as [Name, RxCollection][];
  }

  async #scan(): Promise<void> {
    for (const [name, collection] of this.#collections()) {
      const marked = await collection.find({ selector: { syncError: { $exists: true } } }).exec();
      for (const row of marked) this.#update(name, row._data as Row);
    }
  }

  #update(collection: Name, row: Row): void {
    const key = `${collection}/${row["id"]}`;
    const error = row["syncError"] as { code: string; message: string; at: string } | undefined;
    if (!error || row["_deleted"]) {
      if (this.#rows.delete(key)) this.#changed.next();
      return;
    }
    const id = collection === "vectorEmbeddings" ? row["documentId"] : row["id"];
    const { createdAt } = row as { createdAt: string };
    this.#rows.set(key, { collection, id, createdAt, name: nameOf(collection, row), ...error });
    this.#changed.next();
  }

  /** Publish the list. The blocks of a document are one entry with the document's name. */
  async #publish(): Promise<void> {
    const listed = new Map<string, RejectedRow>();
    for (const row of this.#rows.values()) listed.set(`${row.collection}/${row.id}`, row);
    for (const row of listed.values()) {
      if (row.collection !== "vectorEmbeddings") continue;
      const document = await this.#context.database.documents.findOne(row.id).exec();
      row.name = document?.filename ?? "";
    }
    const newer = (a: RejectedRow, b: RejectedRow) =>
      compareStrings(b.at, a.at) || compareStrings(b.createdAt, a.createdAt);
    // Rows of one push are rejected at the same time, so `newer` also compares their creation times.
    this.rows$.next([...listed.values()].sort(newer));
  }
}
