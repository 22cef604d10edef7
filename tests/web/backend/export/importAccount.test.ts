/** Import an export: file names, lines, schema checks, renamed ids, and which rows are imported. */

import { strToU8, zipSync, type Zippable } from "fflate";
import type { ImportedTurn } from "../../../../web/src/storage/deviceDatabase.ts";
import { matchesSchema, type Schema } from "../../../../web/src/core/schema/jsonSchemaValidator.ts";
import { importedTurnId } from "../../../../web/src/core/export/importedTurnId.ts";
import { createMatcher } from "../../../../web/src/core/text/wordMatch.ts";
import { references, renameIds } from "../../../../web/src/core/schema/rowReferences.ts";
import { Lines, textFile, waitingFile } from "../../../../web/src/core/export/exportLayout.ts";
import { encode } from "../../../../web/src/core/schema/vector_codec.ts";
import { importAccount } from "../../../../web/src/backend/export/importAccount.ts";
import facts from "../../../../schemas/facts.v0.json";
import { contextOf, insert, openRows, row, stored } from "../../device.ts";

const fact = {
  id: "f",
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
  key: "user.name",
  value: "Ada",
  sourceRemoved: false,
  confidence: 0.5,
  confirmed: true,
};
const fitting = (change: object) => matchesSchema({ ...fact, ...change }, facts as Schema);

test("a valid row matches its schema", () => {
  expect(fitting({})).toBe(true);
  expect(fitting({ sourceDocumentId: "d" })).toBe(true);
});

test.each([
  ["a wrong type", { value: 3 }],
  ["a number out of range", { confidence: 1.5 }],
  ["null instead of a number", { confidence: null }],
  ["a text over the maximum length", { key: "k".repeat(256) }],
  ["an unknown field", { extra: 1 }],
  ["a property name of Object.prototype", JSON.parse('{"constructor": 1}')],
])("%s does not match the schema", (_, change) => {
  expect(fitting(change)).toBe(false);
});

test("a row without a required field does not match the schema", () => {
  const { value: _, ...rest } = fact;
  expect(matchesSchema(rest, facts as Schema)).toBe(false);
});

test("file names equal the server's and prevent path traversal", () => {
  expect(textFile("lease 2.pdf", "d1")).toBe("documents/lease 2.pdf (d1).txt");
  expect(textFile("../../etc/passwd", "d")).toBe("documents/.._.._etc_passwd (d).txt");
  expect(waitingFile("../passwd", 1)).toBe("files/1 .._passwd");
  expect(new TextEncoder().encode(textFile("ä".repeat(255), "")).length).toBeLessThanOrEqual(120 + 17);
});

test("Lines joins pieces into complete lines", () => {
  const lines = new Lines(10);
  expect(lines.feed("ab\nc")).toEqual(["ab"]);
  expect(lines.feed("d\n\ne")).toEqual(["cd", ""]);
  expect(lines.end()).toEqual(["e"]);
  expect(() => lines.feed("x".repeat(20))).toThrow(RangeError);
});

test("renaming an id changes every reference to it", () => {
  const rename = (target: string, id: string) => (`${target}/${id}` === "documents/d" ? "d~2" : id);
  const block = { id: "d.3", documentId: "d", block: 3 };
  expect(renameIds("vectorEmbeddings", block, rename)).toMatchObject({ id: "d~2.3", documentId: "d~2" });
  const episode = { id: "d", sessionId: "d", citations: [{ documentId: "d", filename: "x" }] };
  const changed = renameIds("episodes", episode, rename);
  expect(changed).toMatchObject({ id: "d", sessionId: "d", citations: [{ documentId: "d~2" }] });
  expect(references("episodes", episode)).toContainEqual(["documents", "d"]);
  expect(references("memories", { id: "m", sessionIds: ["s"] })).toEqual([
    ["memories", "m"],
    ["sessions", "s"],
  ]);
});

test("createMatcher ignores word order, case and accents", () => {
  expect(createMatcher("MULLER kundigung")("Kündigung an Herrn Müller.pdf")).toBe(true);
  expect(createMatcher("müller rent")("Müller.pdf")).toBe(false);
  expect(createMatcher("  ")("anything")).toBe(true);
});

/** Return an export that contains these rows of one collection. */
function zipOf(name: string, ...rows: object[]): Blob {
  const lines = rows.map((fields) => JSON.stringify(row(name, fields)));
  return new Blob([zipSync({ [`${name}.jsonl`]: strToU8(lines.join("\n")) })]);
}

test("blocks with invalid vectors are not imported", async () => {
  const records = await openRows();
  const block = { documentId: "d", model: "m", dims: 2 };
  const embedding = (...numbers: number[]) => encode(Float32Array.from(numbers));
  const zip = zipOf(
    "vectorEmbeddings",
    { ...block, id: "d.0", block: 0, embedding: embedding(1, 0) },
    { ...block, id: "d.1", block: 1, embedding: "###" },
    { ...block, id: "d.2", block: 2, embedding: embedding(1, 0, 0, 1) },
    { ...block, id: "d.3", block: 3, embedding: null },
  );
  expect(await importAccount(contextOf(records), zip)).toEqual({ added: 2, existing: 0, leftOut: 2 });
  expect((await records.vectorEmbeddings.find().exec()).map(({ id }) => id)).toEqual(["d.0", "d.3"]);
});

async function truncate(zip: Blob, size: number): Promise<Blob> {
  return new Blob([await zip.slice(0, size).arrayBuffer()]);
}

test("a truncated ZIP is rejected wherever it ends", async () => {
  const records = await openRows();
  const inner = new Uint8Array(await zipOf("facts", { id: "inner" }).arrayBuffer());
  const line = (id: string) => strToU8(JSON.stringify(row("facts", { id })));
  const files: Zippable = { "facts.jsonl": line("a"), "files/1 other.zip": [inner, { level: 0 }] };
  const whole = new Blob([zipSync(files)]);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const end = bytes.indexOf("504b0304", 1, "hex"); // the second local header, so the first file ends here
  // The central directory begins after the two zero bytes that end the inner ZIP.
  const entries = bytes.lastIndexOf(Buffer.from("0000504b0102", "hex")) + 2;
  for (const size of [10, end, entries, whole.size - 22, whole.size - 1]) {
    await expect(importAccount(contextOf(records), await truncate(whole, size)), `${size}`).rejects.toThrow(
      "ZIP_CUT_OFF",
    );
  }
  expect(await records.facts.find().exec()).toEqual([]);
  const longer = new Blob([whole, new Uint8Array(9)]); // some programs append bytes to a file
  expect((await importAccount(contextOf(records), longer)).added).toBe(1);
  await expect(importAccount(contextOf(records), new Blob([new Uint8Array(100)]))).rejects.toThrow(
    "NOT_AN_EXPORT",
  );
});

/** Return an export of one fact. `edit` changes its bytes: the member, its entry in the directory, and the end record. */
function hostileZip(edit: (zip: Buffer, entry: number, end: number) => void, comment = ""): Blob {
  const facts: Zippable = {
    "facts.jsonl": [strToU8(JSON.stringify(row("facts", { id: "f" }))), { level: 0 }],
  };
  const zip = Buffer.concat([zipSync(facts), Buffer.from(comment, "latin1")]);
  const end = zip.indexOf("504b0506", 0, "hex");
  zip.writeUInt16LE(comment.length, end + 20);
  edit(zip, zip.indexOf("504b0102", 0, "hex"), end);
  return new Blob([new Uint8Array(zip)]);
}

test.each<[string, string, Parameters<typeof hostileZip>[0]]>([
  ["a member longer than stated", "ZIP_DAMAGED", (zip, entry) => zip.writeUInt32LE(9, entry + 24)],
  ["packed bytes past the end", "ZIP_DAMAGED", (zip, entry) => zip.writeUInt32LE(zip.length, entry + 20)],
  ["an extra field past the end", "ZIP_DAMAGED", (zip, entry) => zip.fill(0xff, entry + 20, entry + 32)],
  ["a name past the end", "ZIP_DAMAGED", (zip, entry) => zip.writeUInt16LE(60_000, entry + 28)],
  ["an entry without its signature", "ZIP_DAMAGED", (zip, entry) => zip.fill(0, entry, entry + 4)],
  ["10,001 members", "ZIP_TOO_MANY_FILES", (zip, _, end) => zip.writeUInt16LE(10_001, end + 10)],
  [
    "a directory that does not end at its record",
    "ZIP_CUT_OFF",
    (zip, _, end) => zip.writeUInt32LE(9, end + 16),
  ],
])("an import rejects %s", async (_, code, edit) => {
  const context = contextOf(await openRows());
  await expect(importAccount(context, hostileZip(edit))).rejects.toThrow(code);
  expect(await context.database.facts.find().exec()).toEqual([]);
});

test.each([
  ["a signature in the comment", hostileZip(() => {}, `PK\x05\x06${"\0".repeat(18)}`)],
  ["ZIP64 records after the directory", withZip64Records()],
])("an import accepts %s", async (_, zip) => {
  expect((await importAccount(contextOf(await openRows()), zip)).added).toBe(1);
});

/** Return an export that has ZIP64 records although it is small. The import does not read the numbers in them. */
function withZip64Records(): Blob {
  const zip = Buffer.from(zipSync({ "facts.jsonl": strToU8(JSON.stringify(row("facts", { id: "f" }))) }));
  const end = zip.length - 22;
  const records = Buffer.alloc(76);
  records.write("PK\x06\x06", 0, "latin1");
  records.write("PK\x06\x07", 56, "latin1");
  return new Blob([zip.subarray(0, end), records, zip.subarray(end)]);
}

/** The place of the damaged byte: in a stored row, or in the checksum that the directory has for compressed rows. */
test.each([
  [0, (zip: Buffer) => zip.indexOf("of mine")],
  [6, (zip: Buffer) => zip.lastIndexOf(Buffer.from("504b0102", "hex")) + 16],
] as const)("no row is imported from a corrupt ZIP: compression level %i", async (level, place) => {
  const context = contextOf(await openRows());
  const rows = ["a", "b", "c"].map((id) => JSON.stringify(row("facts", { id, value: "a word of mine" })));
  const projects = Array.from({ length: 800 }, (_, n) => JSON.stringify(row("projects", { id: `p${n}` })));
  const bytes = zipSync({
    "projects.jsonl": [strToU8(projects.join("\n")), { level: 0 }], // more bytes than the import reads at a time
    "facts.jsonl": [strToU8(rows.join("\n")), { level }],
  });
  const damaged = bytes.slice();
  damaged[place(Buffer.from(bytes))]! ^= 1; // the only damage
  await expect(importAccount(context, new Blob([damaged]))).rejects.toThrow("ZIP_DAMAGED");
  expect(await context.database.projects.find().exec()).toEqual([]);
  expect((await importAccount(context, new Blob([bytes]))).added).toBe(803);
});

test("imported rows older than forget everything get new timestamps", async () => {
  const context = contextOf(await openRows());
  const forgottenAt = "2026-02-01T00:00:00.000Z";
  const later = "2026-02-02T00:00:00.000Z";
  context.account$.next({ ...context.account, forgottenAt });
  await importAccount(
    context,
    zipOf("facts", { id: "old" }, { id: "new", createdAt: later, updatedAt: later }),
  );
  const { createdAt, updatedAt } = await stored(context.database, "facts", "old");
  expect(createdAt).toBe(updatedAt);
  expect(String(createdAt) > forgottenAt).toBe(true);
  expect(await stored(context.database, "facts", "new")).toMatchObject({
    createdAt: later,
    updatedAt: later,
  });
});

test("a row synced during import counts as existing", async () => {
  const records = await openRows();
  const { findByIds } = records.facts;
  records.facts.findByIds = function (ids) {
    const found = findByIds.call(this, ids);
    const exec = async () => {
      const alive = await found.exec();
      await insert(records, "facts", { id: "f" });
      return alive;
    };
    return { exec } as typeof found;
  };
  const zip = zipOf("facts", { id: "f" }, { id: "g" });
  expect(await importAccount(contextOf(records), zip)).toEqual({ added: 1, existing: 1, leftOut: 0 });
});

test("an imported row with an invalid date is skipped", async () => {
  const records = await openRows();
  const project = { name: "Flat" };
  const zip = zipOf(
    "projects",
    { ...project, id: "p1" },
    { ...project, id: "p2", updatedAt: "2026-02-30T00:00:00.000Z" },
  );
  expect(await importAccount(contextOf(records), zip)).toEqual({ added: 1, existing: 0, leftOut: 1 });
});

test("finished turns are recorded as imported before they are stored", async () => {
  const context = contextOf(await openRows());
  const recordedIds: string[] = [];
  const bulkPut = async (turns: ImportedTurn[]) => {
    expect(await context.database.episodes.find({ selector: { id: { $ne: "here" } } }).exec()).toEqual([]);
    recordedIds.push(...turns.map(({ id }) => id));
  };
  Object.assign(context.device, { imported: { bulkPut } });
  const turn = (id: string, status: string) => ({ id, sessionId: "s", userMessage: "four", status });
  await insert(context.database, "episodes", turn("here", "done"));
  const zip = zipOf(
    "episodes",
    ...["done", "stopped", "queued", "streaming", "failed", "here"].map((id) =>
      turn(id, id === "here" ? "done" : id),
    ),
  );
  expect(await importAccount(context, zip)).toEqual({ added: 5, existing: 1, leftOut: 0 });
  const importedIdOf = async (id: string) =>
    importedTurnId("u", (await context.database.episodes.findOne(id).exec())!);
  expect(recordedIds).toEqual([await importedIdOf("done"), await importedIdOf("stopped")]);
});

test("importedTurnId depends on account, id and text", () => {
  const turn = { id: "e", userMessage: "four", aiResponse: "words" };
  const other = [
    importedTurnId("v", turn),
    importedTurnId("u", { ...turn, id: "f" }),
    importedTurnId("u", { ...turn, userMessage: "five, or" }),
    importedTurnId("u", { ...turn, aiResponse: "" }),
  ];
  expect(new Set([importedTurnId("u", turn), ...other]).size).toBe(5);
  expect(importedTurnId("u", { ...turn, updatedAt: "later", syncError: {} })).toBe(importedTurnId("u", turn));
});
