/** What of an export is pure: names, lines, rows that fit, and rows under other ids. */

import { fits, type Schema } from "../../web/src/model/fits.ts";
import { matcher } from "../../web/src/model/match.ts";
import { references, renamed } from "../../web/src/model/references.ts";
import { Lines, textFile, waitingFile } from "../../web/src/model/takeout.ts";
import facts from "../../schemas/facts.v0.json";

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
const fitting = (change: object) => fits({ ...fact, ...change }, facts as Schema);

test("a row fits its schema", () => {
  expect(fitting({})).toBe(true);
  expect(fitting({ sourceDocumentId: "d" })).toBe(true);
});

test.each([
  ["a wrong type", { value: 3 }],
  ["a number beyond its bounds", { confidence: 1.5 }],
  ["a number that is none", { confidence: null }],
  ["a text that is too long", { key: "k".repeat(256) }],
  ["a field that nobody knows", { extra: 1 }],
  ["a prototype's name", JSON.parse('{"constructor": 1}')],
])("%s does not fit", (_, change) => {
  expect(fitting(change)).toBe(false);
});

test("what is required must be there", () => {
  const { value: _, ...rest } = fact;
  expect(fits(rest, facts as Schema)).toBe(false);
});

test("a file of text is references as the server names it, and leads nowhere else", () => {
  expect(textFile("lease 2.pdf", "d1")).toBe("documents/lease 2.pdf (d1).txt");
  expect(textFile("../../etc/passwd", "d")).toBe("documents/.._.._etc_passwd (d).txt");
  expect(waitingFile("../passwd", 1)).toBe("files/1 .._passwd");
  expect(new TextEncoder().encode(textFile("ä".repeat(255), "")).length).toBeLessThanOrEqual(120 + 17);
});

test("lines come out whole, however the pieces are cut", () => {
  const lines = new Lines(10);
  expect(lines.feed("ab\nc")).toEqual(["ab"]);
  expect(lines.feed("d\n\ne")).toEqual(["cd", ""]);
  expect(lines.end()).toEqual(["e"]);
  expect(() => lines.feed("x".repeat(20))).toThrow(RangeError);
});

test("another id goes wherever a row is references", () => {
  const rename = (target: string, id: string) => (`${target}/${id}` === "documents/d" ? "d~2" : id);
  const block = { id: "d.3", documentId: "d", block: 3 };
  expect(renamed("vectorEmbeddings", block, rename)).toMatchObject({ id: "d~2.3", documentId: "d~2" });
  const episode = { id: "d", sessionId: "d", citations: [{ documentId: "d", filename: "x" }] };
  const changed = renamed("episodes", episode, rename);
  expect(changed).toMatchObject({ id: "d", sessionId: "d", citations: [{ documentId: "d~2" }] });
  expect(references("episodes", episode)).toContainEqual(["documents", "d"]);
  expect(references("memories", { id: "m", sessionIds: ["s"] })).toEqual([
    ["memories", "m"],
    ["sessions", "s"],
  ]);
});

test("words are found without case and accents, in any order", () => {
  expect(matcher("MULLER kundigung")("Kündigung an Herrn Müller.pdf")).toBe(true);
  expect(matcher("müller rent")("Müller.pdf")).toBe(false);
  expect(matcher("  ")("anything")).toBe(true);
});
