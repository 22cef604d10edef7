/** Kill the server or the page repeatedly while they sync: no row is lost or duplicated, and the sync completes. */

import { Device, harness, withOwnServer } from "./app.ts";

withOwnServer();

/** Each round adds a document. When there are more than DOCUMENTS_MAX, the test deletes the oldest one. */
const [ROUNDS, DOCUMENTS_MAX] = process.env["SOAK"] ? [200, 50] : [4, 3];

/** Return a random number generator (mulberry32) with a seed. */
function seededRandom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function deleteDocument(device: Device, filename: string): Promise<void> {
  const rows = () => device.rows("documents", { selector: { filename } });
  await device.until(async () => (await rows()).length === 1); // it may still wait to be parsed
  const ids = (await rows()).map(({ id }) => id);
  await device.page.evaluate((ids) => window.vademecum.deleteDocuments(ids), ids);
}

/** Ask a question, and retry while the previous one has no answer, because the text then stays in the composer. */
async function ask(device: Device, question: string): Promise<void> {
  await device.ask(question);
  const composer = device.composer;
  await device.until(async () => {
    if ((await composer.inputValue()) === "") return true;
    await composer.press("Enter");
    return false;
  });
}

test(`${ROUNDS} kills lose and duplicate no rows`, async () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
  console.log(`SEED=${seed}`);
  const random = seededRandom(seed);
  const user = await harness.user();
  const device = await Device.of(user, { installs: true });
  await device.installed();
  const questions: string[] = [];
  const dropped: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const question = `What about number ${round}?`;
    await ask(device, question);
    questions.push(question);
    const text = `Note ${round}: ${"the quick brown fox. ".repeat(1 + Math.floor(random() * 400))}`;
    await device.drop(`note ${round}.txt`, text);
    dropped.push(`note ${round}.txt`);
    await device.hasFiles(dropped.length);
    if (dropped.length > DOCUMENTS_MAX) await deleteDocument(device, dropped.shift()!);
    if (random() < 0.5) {
      await new Promise((resolve) => setTimeout(resolve, random() * 300));
      await harness.control("kill");
      await new Promise((resolve) => setTimeout(resolve, random() * 500));
      await harness.control("start");
    } else {
      await device.reopen();
    }
  }
  await device.until(async () => {
    const { sync, uploads } = await device.state();
    const busy = uploads.some(({ stage }) => !["done", "failed"].includes(stage));
    return sync.kind === "live" && sync.waiting === 0 && !busy;
  });
  await device.embedded(dropped.length);
  for (const collection of ["documents", "vectorEmbeddings", "sessions", "episodes"] as const) {
    const [here, there] = [await device.rows(collection), await harness.liveRows(user, collection)];
    const ids = (rows: { id?: unknown }[]) => rows.map(({ id }) => id).sort();
    expect(ids(here), collection).toEqual(ids(there));
  }
  const documents = await device.rows("documents");
  expect(documents.map(({ filename }) => filename).sort()).toEqual(dropped.toSorted());
  expect(documents.every(({ status, syncError }) => status === "ready" && !syncError)).toBe(true);
  const episodes = await device.rows("episodes");
  expect(episodes.map(({ userMessage }) => userMessage).sort()).toEqual(questions.toSorted());
}, 2_400_000);
