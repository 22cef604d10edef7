/**
 * Check the shared text rules in TypeScript against the conformance cases. CONFORMANCE names another folder of cases,
 * such as the random ones of tests/conformance/random_texts.py.
 */

import { readFileSync } from "node:fs";
import { runChunking, runNormalization, runRanking, runVectors } from "./cases.ts";

const folder = process.env["CONFORMANCE"] ?? "tests/conformance";

function cases<Case>(name: string): Case[] {
  return JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
}

test("normalization matches the server", () => {
  expect(runNormalization(cases("normalization"))).toEqual([]);
});

test("chunking matches the server", () => {
  expect(runChunking(cases("chunking"))).toEqual([]);
});

test("tokens, scores and rankings match the server", () => {
  expect(runRanking(cases("ranking"))).toEqual([]);
});

test("vectors are decoded or rejected as on the server", () => {
  expect(runVectors(cases("vectors"))).toEqual([]);
});
