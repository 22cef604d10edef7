/**
 * Measure how fast the browser searches its own chunks: `node bench/browser.mjs [chunks [rounds]]`.
 *
 * Chromium loads documents of 100 chunks as rows (base64 vectors of 384 dimensions), then runs keyword, vector and
 * hybrid searches in turn, each with a new question. The words of the texts are as frequent as in prose. Half of the
 * documents have accents or lack spaces, which makes folding slower. The goal is a median of 20 ms for 5,000 chunks.
 */

import { loadavg } from "node:os";
import { runnerImport } from "vite";

const { module: harness } = await runnerImport("./tests/e2e/browser.ts");
const { module: bundler } = await runnerImport("./tests/e2e/bundle.ts");
const [chunks, rounds] = [process.argv[2] ?? 5000, process.argv[3] ?? 20].map(Number);

/**
 * Run in the page. Return two values: the milliseconds that loading the chunks took, and a map from each search mode to
 * the milliseconds of its questions.
 */
function measure({ chunks, rounds }) {
  const [DIMS, BLOCK, DOCUMENT] = [384, 16, 100];
  let state = 1;
  const random = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) / 2 ** 32;
  const draw = (some, skew) => some[Math.floor(some.length * random() ** skew)];
  const made = (letters, count) =>
    Array.from({ length: count }, () =>
      Array.from({ length: 2 + random() * 8 }, () => draw(letters, 1)).join(""),
    );
  const plain = made([..."etaoinshrdlucmfw"], 20_000);
  const vocabularies = [
    plain,
    plain,
    made([..."éàüößçñêtaoinshr"], 20_000),
    made([..."国一人年大十二本中長出三時行見月"], 5_000),
  ];
  const text = (words, count) => Array.from({ length: count }, () => draw(words, 4)).join(" ");
  const vector = () => Float32Array.from({ length: DIMS }, () => random() - 0.5);
  const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const row = (words, block, first, count) => {
    const vectors = new Float32Array(count * DIMS).map(() => random() - 0.5);
    const texts = Array.from({ length: count }, (_, at) => ({ index: first + at, text: text(words, 150) }));
    return {
      block,
      chunks: texts,
      model: "m",
      dims: DIMS,
      embedding: base64(new Uint8Array(vectors.buffer)),
    };
  };
  const ids = Array.from({ length: Math.ceil(chunks / DOCUMENT) }, (_, at) => `document-${at}`);
  const documents = ids.map((_, at) => {
    const words = vocabularies[at % vocabularies.length];
    const size = Math.min(DOCUMENT, chunks - at * DOCUMENT);
    return Array.from({ length: Math.ceil(size / BLOCK) }, (_, block) =>
      row(words, block, block * BLOCK, Math.min(BLOCK, size - block * BLOCK)),
    );
  });

  const { PassageIndex, toBlock } = window.model;
  const passages = new PassageIndex(DIMS);
  const began = performance.now();
  for (const [at, rows] of documents.entries()) {
    const blocks = rows.map((row) => toBlock(row, "m"));
    passages.add({ id: ids[at], filename: `${ids[at]}.txt` }, blocks);
  }
  const load = performance.now() - began;

  const modes = {
    words: (query) => passages.words(query, ids, 10),
    meaning: (_, unit) => passages.meaning(unit, ids, 10),
    hybrid: (query, unit) => passages.search(query, unit, ids, 10),
  };
  const took = { words: [], meaning: [], hybrid: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [mode, ask] of Object.entries(modes)) {
      const [query, unit] = [text(vocabularies[round % vocabularies.length], 8), vector()];
      const start = performance.now();
      const found = ask(query, unit);
      took[mode].push(performance.now() - start);
      if (found.length !== 10) throw new Error(`${mode} found ${found.length}.`);
    }
  }
  return { load, took };
}

const browser = await harness.Browser.start({ own: [] });
try {
  const page = await browser.page("about:blank");
  await page.addScriptTag({
    content: await bundler.bundle("web/src/core/documents/passageIndex.ts", "model"),
  });
  const { load, took } = await page.evaluate(measure, { chunks, rounds });
  console.log(`${chunks} chunks, ${rounds} questions a mode; load average ${loadavg()[0].toFixed(1)}`);
  console.log(`loaded once in ${load.toFixed(0)} ms\n\n| mode | median ms | slowest ms |\n|---|---|---|`);
  for (const [mode, times] of Object.entries(took)) {
    times.sort((a, b) => a - b);
    console.log(`| ${mode} | ${times[rounds >> 1].toFixed(1)} | ${times.at(-1).toFixed(1)} |`);
  }
} finally {
  await browser.stop();
}
