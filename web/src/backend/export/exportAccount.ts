/** Export the account as a ZIP in open formats, from the rows on this device. Rows are read in batches. */

import { Zip, ZipDeflate } from "fflate";
import type { RxCollection } from "rxdb/plugins/core";
import { join } from "../../core/documents/chunking.ts";
import { LOST, README, textFile, waitingFile } from "../../core/export/exportLayout.ts";
import { blocksOf } from "../library/documents.ts";
import type { AccountContext } from "../account/accountContext.ts";

const BATCH = 100;
const MAX_BUFFER_BYTES = 4 * 2 ** 20;
type Row = Record<string, any>;

export async function exportAccount(context: AccountContext): Promise<Blob> {
  const { userId, email, tier } = context.account;
  const archive = new ZipWriter();
  archive.addFile("README.txt").end(README);
  archive.addFile("account.json").end(JSON.stringify({ userId, email, tier }, null, 2));
  for (const [name, collection] of Object.entries(context.database.collections)) {
    const file = archive.addFile(`${name}.jsonl`);
    for await (const rows of batches(collection)) {
      file.write(rows.map((row) => `${JSON.stringify(withoutSyncError(row))}\n`).join(""));
    }
    file.end();
  }
  for await (const documents of batches(context.database.documents)) {
    for (const { id, filename } of documents) {
      const chunks = (await blocksOf(context, id)).flatMap((block) => block.chunks);
      archive.addFile(textFile(filename, id)).end(join(chunks));
    }
  }
  await exportDeviceData(context, archive);
  return archive.close();
}

/** Add the data that exists only on this device: conflict losers and files that are not documents yet. */
async function exportDeviceData({ account, device }: AccountContext, archive: ZipWriter): Promise<void> {
  const { userId } = account;
  const lost = await device.lost.where({ userId }).toArray();
  archive.addFile(LOST).end(lost.map((text) => `${JSON.stringify(text)}\n`).join(""));
  let number = 0;
  for (const id of await device.files.where({ userId }).primaryKeys()) {
    const waiting = await device.files.get(id);
    if (!waiting) continue;
    const content = new Uint8Array(await waiting.content.arrayBuffer());
    archive.addFile(waitingFile(waiting.name, ++number)).end(content);
  }
}

/** Return the row without `syncError`, which has no meaning on other devices. */
function withoutSyncError({ syncError: _, ...row }: Row): Row {
  return row;
}

async function* batches(collection: RxCollection<any>): AsyncGenerator<Row[]> {
  for (let after = ""; ;) {
    const query = { selector: { id: { $gt: after } }, sort: [{ id: "asc" as const }], limit: BATCH };
    const rows: Row[] = (await collection.find(query).exec()).map((row) => row.toMutableJSON());
    if (rows.length) yield rows;
    if (rows.length < BATCH) return;
    after = rows.at(-1)!["id"];
  }
}

/** A streaming ZIP writer. Finished parts go into a Blob, which the browser may keep on disk. */
class ZipWriter {
  #blob = new Blob([], { type: "application/zip" });
  #parts: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  readonly #text = new TextEncoder();
  readonly #zip = new Zip((error, data) => {
    if (error) throw error;
    this.#parts.push(data as Uint8Array<ArrayBuffer>);
    this.#bytes += data.length;
    if (this.#bytes > MAX_BUFFER_BYTES) this.#flush();
  });

  addFile(name: string): { write(text: string): void; end(content?: string | Uint8Array): void } {
    const entry = new ZipDeflate(name, { level: 6 });
    this.#zip.add(entry);
    return {
      write: (text) => entry.push(this.#text.encode(text)),
      end: (content = "") =>
        entry.push(typeof content === "string" ? this.#text.encode(content) : content, true),
    };
  }

  close(): Blob {
    this.#zip.end();
    this.#flush();
    return this.#blob;
  }

  #flush(): void {
    this.#blob = new Blob([this.#blob, ...this.#parts], { type: "application/zip" });
    this.#parts = [];
    this.#bytes = 0;
  }
}
