/**
 * The texts' rules in TypeScript against the shared cases. CONFORMANCE names another folder of cases, such as the
 * random ones of tests/conformance/random_texts.py.
 */

import { readFileSync } from "node:fs";
import { runChunking, runNormalization, runRanking, runVectors } from "./cases.ts";

const folder = process.env["CONFORMANCE"] ?? "tests/conformance";

function cases<Case>(name: string): Case[] {
  return JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
}

test("a text is spelled as the server spells it", () => {
  expect(runNormalization(cases("normalization"))).toEqual([]);
});

test("a document is cut into the chunks that the server cuts", () => {
  expect(runChunking(cases("chunking"))).toEqual([]);
});

test("words, scores and orders are the server's", () => {
  expect(runRanking(cases("ranking"))).toEqual([]);
});

test("vectors are read, and refused, as the server does", () => {
  expect(runVectors(cases("vectors"))).toEqual([]);
});
