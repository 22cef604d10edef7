/** The search cache of a device stays within its limit, and searches stay complete. Uses the real database. */

import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { deleteDocuments } from "../../../../web/src/backend/deletion/deletion.ts";
import { borrow } from "../../../../web/src/backend/library/documents.ts";
import { editRow } from "../../../../web/src/storage/editRow.ts";
import { EmbeddingModel, type ModelInfo } from "../../../../web/src/backend/library/embeddingModel.ts";
import { DocumentSearch } from "../../../../web/src/backend/library/documentSearch.ts";
import { counting, contextOf, insert, openRows, type Counted } from "../../device.ts";
import { encode } from "../../../../web/src/core/schema/vector_codec.ts";
import { Postings } from "../../../../web/src/core/text/bm25.ts";
import { soon } from "../../../soon.ts";

const CHUNKS_MAX = 5; // the limit in chunks: two documents of two chunks fit, three do not

let records: AccountDatabase;
let counted: Counted;
let searcher: DocumentSearch;
let model: { hash: string; dims: number } | undefined;

beforeEach(async () => {
  counted = counting(getRxStorageMemory());
  records = await openRows(counted.storage);
  for (const id of ["a", "b", "c"]) {
    await insert(records, "documents", { id, activeSessions: [`only-${id}`, "all"] });
    const chunks = [0, 1].map((index) => ({ index, start: 0, text: `fox ${id} ${index}`, tokens: 3 }));
    await insert(records, "vectorEmbeddings", { id: `${id}.0`, documentId: id, block: 0, chunks });
  }
  model = undefined;
  const context = contextOf(records, () => ({ model: model as ModelInfo }));
  searcher = new DocumentSearch(context, new EmbeddingModel(context), CHUNKS_MAX);
});

/** Wait until released reads have been processed. */
const settle = async () => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
};

/** Search for a word. Return the documents that contain it, and the number of blocks that the search read. */
async function ask(sessionId: string, word = "fox"): Promise<{ in: string[]; read: number }> {
  const before = counted.read("vectorEmbeddings");
  const { results } = await searcher.search(word, sessionId, 10);
  return {
    in: [...new Set(results.map(({ documentId }) => documentId))].sort(),
    read: counted.read("vectorEmbeddings") - before,
  };
}

test("the least recently searched document is evicted first", async () => {
  expect(await ask("only-a")).toEqual({ in: ["a"], read: 1 });
  expect(await ask("only-b")).toEqual({ in: ["b"], read: 1 });
  expect(await ask("only-a")).toEqual({ in: ["a"], read: 0 });
  expect(await ask("only-c")).toEqual({ in: ["c"], read: 1 }); // this evicts "b"
  expect(searcher.chunks).toBe(4);
  await soon(() => expect(records.vectorEmbeddings._queryCache._map.size).toBe(0)); // nor does RxDB cache them
  expect(await ask("only-a")).toEqual({ in: ["a"], read: 0 });
  expect(await ask("only-b")).toEqual({ in: ["b"], read: 1 });
});

test("documents beyond the cache limit are searched too", async () => {
  expect((await ask("all")).in).toEqual(["a", "b", "c"]);
  expect(searcher.chunks).toBeLessThanOrEqual(CHUNKS_MAX);
  expect((await ask("all")).in).toEqual(["a", "b", "c"]);
});

test("concurrent searches give complete results", async () => {
  const pending = ["only-a", "all", "only-b", "only-c", "all"].map((session) => ask(session));
  const found = (await Promise.all(pending)).map((one) => one.in.join(""));
  expect(found).toEqual(["a", "abc", "b", "c", "abc"]);
  expect(searcher.chunks).toBeLessThanOrEqual(CHUNKS_MAX);
});

test("the search cache rereads changed blocks and drops deleted documents", async () => {
  await ask("only-a");
  const block = (await records.vectorEmbeddings.findOne("a.0").exec())!;
  await editRow(block, (row) => ({ ...row, chunks: [{ index: 0, start: 0, text: "hen", tokens: 1 }] }));
  expect((await ask("only-a", "hen")).in).toEqual(["a"]);
  expect((await ask("only-a", "fox")).in).toEqual([]);
  await deleteDocuments(contextOf(records), ["a"]);
  expect(searcher.chunks).toBe(0);
  expect((await ask("only-a", "hen")).in).toEqual([]);
});

test("a chat searches only the documents it borrows", async () => {
  await ask("all");
  expect((await ask("another")).in).toEqual([]);
  await borrow(contextOf(records), "b", "another");
  expect((await ask("another")).in).toEqual(["b"]);
});

/** Delay the next read of blocks, which returns the rows of now, until the returned function is called. */
function delayNextRead(): () => void {
  const { find } = records.vectorEmbeddings;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  records.vectorEmbeddings.find = function (query) {
    records.vectorEmbeddings.find = find;
    const found = find.call(this, query);
    const exec = async () => {
      const rows = await found.exec();
      await released;
      return rows;
    };
    return { exec } as typeof found;
  };
  return release;
}

test("a search waiting for a read is served by the read that restarts it", async () => {
  const endFirst = delayNextRead();
  const pending = ask("only-a");
  await settle();
  const block = (await records.vectorEmbeddings.findOne("a.0").exec())!;
  await editRow(block, (row) => ({ ...row, chunks: [{ index: 0, start: 0, text: "a fox", tokens: 1 }] }));
  const endSecond = delayNextRead();
  const prepared = searcher.prepare("only-a");
  await settle();
  endFirst();
  await settle();
  endSecond();
  expect((await pending).in).toEqual(["a"]);
  await prepared;
});

test("a model change during a search loses no result", async () => {
  model = { hash: "one", dims: 2 };
  const end = delayNextRead();
  const pending = ask("only-a");
  await settle();
  model = { hash: "other", dims: 3 };
  await searcher.prepare("only-b");
  end();
  expect((await pending).in).toEqual(["a"]);
});

test("the next search repeats a failed read of blocks", async () => {
  const { find } = records.vectorEmbeddings;
  records.vectorEmbeddings.find = () => {
    throw new Error("The disk does not answer.");
  };
  await expect(ask("only-a")).rejects.toThrow("The disk does not answer.");
  records.vectorEmbeddings.find = find;
  expect((await ask("only-a")).in).toEqual(["a"]);
});

// -- the weight of meaning --------------------------------------------------------------------------------------------

/** A search with a fake model of three dimensions, whose vector of a text is chosen by `vectors`. */
async function searchWithModel(
  question: string,
  texts: Record<string, { text: string; vector: number[] }>,
  { thresholds = null as unknown, countTokens = (texts: string[]) => texts.map((text) => text.length) } = {},
) {
  for (const [id, { text, vector }] of Object.entries(texts)) {
    await insert(records, "documents", { id, activeSessions: ["foreign"] });
    const chunks = [{ index: 0, start: 0, text, tokens: 3 }];
    const embedding = encode(Float32Array.from(vector));
    const row = { id: `${id}.0`, documentId: id, block: 0, chunks, embedding, model: "m", dims: 3 };
    await insert(records, "vectorEmbeddings", row);
  }
  model = { hash: "m", dims: 3 };
  const embedder = {
    manifest: { hash: "m", dims: 3, thresholds },
    query: async () => Float32Array.of(1, 0, 0),
    countTokens: async (texts: string[]) => countTokens(texts),
    close: () => {},
  };
  const context = contextOf(records, () => ({ model: model as ModelInfo }));
  const embedding = new EmbeddingModel(context);
  embedding.embedderIfDownloaded = async () => embedder as never;
  const { results, byMeaning } = await new DocumentSearch(context, embedding).search(question, "foreign", 5);
  return { order: results.map(({ documentId }) => documentId), byMeaning };
}

const NEAR = [1, 0, 0];
const FAR = [0, 1, 0];
const GERMAN = {
  byWords: { text: "Miete Wohnung Hafenstrasse", vector: FAR },
  byMeaning: { text: "Miete im Voraus", vector: NEAR },
};

test("meaning counts less in a language that the model splits into many pieces", async () => {
  const found = await searchWithModel("Miete Wohnung Hafenstrasse", GERMAN);
  expect(found).toEqual({ order: ["byWords", "byMeaning"], byMeaning: true });
});

test("search by meaning has full weight in every language with a multilingual model", async () => {
  const thresholds = { chunkWeight: 3, languages: ["en", "zh"] };
  const found = await searchWithModel("Miete Wohnung Hafenstrasse", GERMAN, { thresholds });
  expect(found).toEqual({ order: ["byMeaning", "byWords"], byMeaning: true });
});

test("a fitted weight applies to text of a known language", async () => {
  const countTokens = (texts: string[]) => texts.map((text) => text.split(" ").length);
  const thresholds = { chunkWeight: 3, languages: ["en"] };
  const found = await searchWithModel("Miete Wohnung Hafenstrasse", GERMAN, { thresholds, countTokens });
  expect(found.order).toEqual(["byMeaning", "byWords"]);
});

test("words alone rank text in a script that the model does not know", async () => {
  const found = await searchWithModel("аренда квартиры", {
    byWords: { text: "аренда квартиры в порту", vector: FAR },
    byMeaning: { text: "аренда", vector: NEAR },
    other: { text: "порт", vector: NEAR },
  });
  expect(found).toEqual({ order: ["byWords", "byMeaning"], byMeaning: true });
});

const MIXED = {
  russian: { text: "аренда квартиры в порту", vector: NEAR },
  english: { text: "the flat at the harbor", vector: [1, 1, 0] },
};

test("text in a script that the model does not know follows other text", async () => {
  const found = await searchWithModel("what does housing cost", MIXED);
  expect(found).toEqual({ order: ["english", "russian"], byMeaning: true });
});

test("a multilingual model ranks text in every script by meaning", async () => {
  const found = await searchWithModel("what does housing cost", MIXED, {
    thresholds: { languages: ["en", "zh"] },
  });
  expect(found.order).toEqual(["russian", "english"]);
});

test("a question in another language is searched by words only once", async () => {
  const find = vi.spyOn(Postings.prototype, "find");
  await searchWithModel("Miete Wohnung Hafenstrasse", GERMAN);
  expect(find).toHaveBeenCalledTimes(3 * 2); // three words in two documents
  find.mockRestore();
});

test("a failed token count falls back to words and says so", async () => {
  const countTokens = () => {
    throw new Error("the worker has crashed");
  };
  const found = await searchWithModel("Miete Wohnung Hafenstrasse", GERMAN, { countTokens });
  expect(found).toEqual({ order: ["byWords", "byMeaning"], byMeaning: false });
});
