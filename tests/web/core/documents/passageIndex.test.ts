/** The in-memory index of chunks: added and removed documents, invalid vectors, and ranking. */

import { type Block, PassageIndex, toBlock } from "../../../../web/src/core/documents/passageIndex.ts";

const vector = Float32Array.of(1, 0);

function block(number: number, texts: string[], vectors: number[] | null): Block {
  const chunks = texts.map((text, at) => ({ index: number * 16 + at, text }));
  return { block: number, chunks, vectors: vectors && Float32Array.from(vectors) };
}

function document(id: string) {
  return { id, filename: `${id}.txt` };
}

function filled(): PassageIndex {
  const passages = new PassageIndex(2);
  passages.add(document("a"), [
    block(0, ["red fox", "blue fox"], [1, 0, 0, 1]),
    block(1, ["green fox"], [3, 3]),
  ]);
  passages.add(document("b"), [block(0, ["red hen"], [2, 0])]);
  return passages;
}

test("an empty or unknown scope gives no results", () => {
  const passages = filled();
  for (const scope of [[], ["c"]]) {
    expect(passages.words("fox", scope, 5)).toEqual([]);
    expect(passages.meaning(vector, scope, 5)).toEqual([]);
    expect(passages.search("fox", vector, scope, 5)).toEqual([]);
  }
});

test("documents outside the scope do not affect results", () => {
  const alone = new PassageIndex(2);
  alone.add(document("b"), [block(0, ["red hen"], [2, 0])]);
  expect(filled().words("red", ["b"], 5)).toEqual(alone.words("red", ["b"], 5));
  expect(filled().words("red", ["b"], 5)[0]!.documentId).toBe("b");
});

test("word search and vector search omit a removed document", () => {
  const passages = filled();
  passages.remove("a");
  expect(passages.words("fox", ["a", "b"], 5)).toEqual([]);
  expect(passages.meaning(vector, ["a", "b"], 5).map((hit) => hit.documentId)).toEqual(["b"]);
});

test("earlier word hits are not used after a document is removed", () => {
  const passages = filled();
  const wordHits = passages.byWords("fox", ["a", "b"], 5);
  passages.remove("a");
  const found = passages.search("fox", vector, ["a", "b"], 5, { wordHits });
  expect(found.map((hit) => hit.documentId)).toEqual(["b"]);
});

test("re-adding a document replaces its chunks", () => {
  const passages = filled();
  passages.add(document("a"), [block(0, ["brown bear"], null)]);
  expect(passages.words("fox", ["a"], 5)).toEqual([]);
  expect(passages.words("bear", ["a"], 5)).toHaveLength(1);
  expect(passages.meaning(vector, ["a"], 5)).toEqual([]);
});

test("equal scores rank by position, not scope order", () => {
  const hits = filled().meaning(vector, ["b", "a", "b"], 3);
  expect(hits.map((hit) => [hit.documentId, hit.chunkIndex, hit.score])).toEqual([
    ["a", 0, 1],
    ["b", 0, 1],
    ["a", 16, 0.707107],
  ]);
});

test("chunks with invalid vectors are found by words only", () => {
  const passages = new PassageIndex(2);
  passages.add(document("a"), [
    block(0, ["fox"], [0, 0]),
    block(1, ["foxes"], [NaN, 1]),
    block(2, ["fox!"], [1]),
  ]);
  expect(passages.meaning(vector, ["a"], 5)).toEqual([]);
  expect(passages.words("fox", ["a"], 5)).toHaveLength(3);
  expect(passages.search("fox", null, ["a"], 2)).toHaveLength(2);
});

test("a query of wrong dimensions throws, a zero query finds no passage", () => {
  expect(() => filled().meaning(Float32Array.of(1), ["a"], 5)).toThrow(RangeError);
  expect(filled().meaning(Float32Array.of(0, 0), ["a"], 5)).toEqual([]);
});

test("a passage lists its source and its duplicates", () => {
  const passages = filled();
  const chunks = [
    { index: 3, text: "RED  fóx", page: 2, section: "Foxes" },
    { index: 4, text: "no fox" },
  ];
  passages.add({ id: "c", filename: "notes.pdf" }, [
    { block: 0, chunks, vectors: Float32Array.of(1, 0, 0, 0) },
  ]);
  const place = {
    documentId: "c",
    filename: "notes.pdf",
    block: 0,
    chunkIndex: 3,
    page: 2,
    section: "Foxes",
  };
  for (const results of [
    passages.words("red fox", ["a", "c"], 1),
    passages.meaning(vector, ["a", "c"], 1),
    passages.search("red fox", vector, ["a", "c"], 1),
  ]) {
    expect(results).toMatchObject([
      { documentId: "a", page: null, section: null, text: "red fox", also: [place] },
    ]);
  }
  expect(passages.words("red fox", ["c"], 1)).toMatchObject([{ ...place, text: "RED  fóx", also: [] }]);
});

test("duplicates share a result only within the scope", () => {
  const passages = filled();
  passages.add(document("c"), [block(0, ["Red fox", "red FOX"], null)]);
  expect(passages.words("red fox", ["a"], 1)[0]!.also).toEqual([]);
  const found = passages.words("red fox", ["a", "c"], 2);
  expect(found.map(({ text, also }) => [text, also.length])).toEqual([
    ["red fox", 2],
    ["blue fox", 0],
  ]);
});

test("only vectors of the current model are decoded", () => {
  const embedding = btoa(String.fromCharCode(...new Uint8Array(Float32Array.of(1, 0.5).buffer)));
  const row = { block: 4, chunks: [{ index: 64, start: 0, text: "fox", tokens: 1 }], model: "m", dims: 2 };
  expect(toBlock({ ...row, embedding }, "m").vectors).toEqual(Float32Array.of(1, 0.5));
  expect(toBlock({ ...row, embedding }, "other").vectors).toBe(null);
  expect(toBlock({ ...row, embedding: null }, "m").vectors).toBe(null);
  expect(toBlock({ ...row, embedding: "###" }, "m").vectors).toBe(null); // invalid data does not throw
});

test("a document named in the query gets every second result", () => {
  const passages = filled();
  const found = (query: string) => passages.search(query, vector, ["a", "b"], 4).map(({ text }) => text);
  expect(found("fox").at(-1)).toBe("red hen");
  passages.add({ id: "b", filename: "farm book.txt" }, [block(0, ["red hen"], [2, 0])]);
  expect(found("the fox in the farm book")[0]).toBe("red hen");
  expect(found("the fox in the farm book")).toHaveLength(4);
  const [named] = passages.search("the fox in the farm book", vector, ["a", "b"], 4);
  expect(named!.score).toBe(0.5); // the nearest of its document, but the farthest of all
  // A named document is omitted if none of its words match.
  expect(passages.words("a fox of the farm book", ["a", "b"], 4)).toHaveLength(3);
});

test("a file name that occurs in the query by coincidence does not rank first", () => {
  const passages = new PassageIndex(2);
  const answer = "The deposit is paid back within three months after the flat is handed over.";
  passages.add(document("house"), [block(0, [answer], null)]);
  const note = "Letter of the association about the summer feast, the garden and who brings cake.";
  passages.add(document("letter"), [block(0, [`${note} One.`, `${note} Two.`], null)]);
  const firstTwo = (query: string) =>
    passages.words(query, ["house", "letter"], 2).map(({ documentId }) => documentId);
  const query =
    "is a letter enough to have the deposit paid back within three months after the flat is handed over";
  expect(firstTwo(query)).toEqual(["house", "letter"]);
  expect(firstTwo(query.replace("a letter", "letter.txt"))).toEqual(["letter", "house"]);
});
