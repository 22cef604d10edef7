/**
 * The texts' rules in TypeScript against the shared cases. CONFORMANCE names another folder of cases, such as the
 * random ones of tests/conformance/random_texts.py.
 */

import { readFileSync } from "node:fs";
import { runChunk, runNormalise, runRanking, runVectors } from "./cases.ts";

const folder = process.env["CONFORMANCE"] ?? "tests/conformance";

function cases<Case>(name: string): Case[] {
  return JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
}

test("a text is spelled as the server spells it", () => {
  expect(runNormalise(cases("normalise"))).toEqual([]);
});

test("a document is cut into the chunks that the server cuts", () => {
  expect(runChunk(cases("chunk"))).toEqual([]);
});

test("words, scores and orders are the server's", () => {
  expect(runRanking(cases("ranking"))).toEqual([]);
});

test("vectors are read, and refused, as the server does", () => {
  expect(runVectors(cases("vectors"))).toEqual([]);
});
