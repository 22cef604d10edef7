/**
 * Measure the app with the maximum number of documents: `node bench/app.mjs [rounds]`, after `npm run build`.
 *
 * A real server has 100 documents of one person, all with vectors: 99 short documents and one of 2,000 chunks. The app
 * in Chromium syncs and lists the documents, opens the long one, answers questions, and is reloaded offline. The printed
 * times are the times that a user waits. The printed memory is that of the page and its worker together, as measured by
 * the browser.
 */

import { loadavg } from "node:os";
import { runnerImport } from "vite";

const { module: chromium } = await runnerImport("./tests/e2e/browser.ts");
const { module: servers } = await runnerImport("./tests/sync/harness.ts");
const { module: wire } = await runnerImport("./tests/sync/wire.ts");
const rounds = Number(process.argv[2] ?? 5);
const [DOCUMENTS, CHUNKS, BLOCK, DIMS, SESSION] = [100, 2_000, 16, 384, "bench"];
const AT = "2026-03-01T00:00:00.000Z";
const WORDS =
  "ferry harbour rent lease notice garden roof winter letter garage heating contract meadow".split(" ");

const common = (id) => ({ id, createdAt: AT, updatedAt: AT });
const text = (n) =>
  `Passage ${n}. ${Array.from({ length: 90 }, (_, at) => WORDS[(n * 7 + at * at) % 13]).join(" ")}.`;
const chunksOf = (at) => (at === 0 ? CHUNKS : BLOCK);

function documentOf(userId, at) {
  return {
    ...common(`d${at}`),
    ...{ userId, originSessionId: SESSION, activeSessions: [SESSION], accessCount: 1, lastAccessedAt: AT },
    ...{ filename: `document ${at}.txt`, mimeType: "text/plain", size: 600 * chunksOf(at), status: "ready" },
    ...{ contentHash: String(at).padStart(64, "0"), chunkCount: chunksOf(at) },
    ...wire.NEW_DOCUMENT_FIELDS,
  };
}

function blocksOf(at, model) {
  return Array.from({ length: chunksOf(at) / BLOCK }, (_, block) => {
    const vectors = Float32Array.from({ length: BLOCK * DIMS }, (_, n) => Math.sin(n * (at + block + 1)));
    const chunks = Array.from({ length: BLOCK }, (_, n) => block * BLOCK + n).map((index) => ({
      ...{ index, start: index * 700, text: text(at * 31 + index), tokens: 100, page: 1 + (index >> 2) },
    }));
    const embedding = Buffer.from(vectors.buffer).toString("base64");
    return {
      ...common(`d${at}.${block}`),
      documentId: `d${at}`,
      block,
      textHash: "",
      model,
      dims: DIMS,
      chunks,
      embedding,
    };
  });
}

async function furnish(server, user) {
  const { current } = await server.request(user, "/v1/models");
  const all = Array.from({ length: DOCUMENTS }, (_, at) => at);
  const push = async (collection, rows) => {
    for (let first = 0; first < rows.length; first += 50) {
      const batch = rows.slice(first, first + 50).map((newDocumentState) => ({ newDocumentState }));
      const init = { method: "POST", body: JSON.stringify(batch) };
      const refused = await server.request(user, `${wire.syncPath(collection)}/push`, init);
      if (refused.length) throw new Error(JSON.stringify(refused[0].syncError));
    }
  };
  await push("sessions", [
    { ...common(SESSION), title: "Bench", mode: "analysis", ...wire.NEW_SESSION_FIELDS },
  ]);
  await push(
    "documents",
    all.map((at) => documentOf(user.userId, at)),
  );
  await push(
    "vectorEmbeddings",
    all.flatMap((at) => blocksOf(at, current)),
  );
}

/** Return the milliseconds from the call of `act` until the promise of `seen` is fulfilled. */
async function timed(act, seen) {
  const began = performance.now();
  await act();
  await seen();
  return performance.now() - began;
}

const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

async function often(act, seen, between = async () => {}) {
  const times = [];
  for (let round = 0; round < rounds; round++) {
    times.push(await timed(() => act(round), seen));
    await between();
  }
  return median(times);
}

/** Return the memory of the page and its worker in MB. Chromium measures the memory after a garbage collection. */
const memory = (page) =>
  page.evaluate(async () => (await performance.measureUserAgentSpecificMemory()).bytes / 2 ** 20);

async function figures(server, browser, user) {
  const { link } = await server.control("link", { userId: user.userId });
  const page = await browser.page(server.url + link);
  await page.getByRole("button", { name: "Sign in" }).click();
  const box = page.getByRole("textbox", { name: "Ask about your documents" });
  await box.waitFor();
  const blocks = CHUNKS / BLOCK + DOCUMENTS - 1;
  const arrived = await timed(
    () => page.evaluate(() => navigator.serviceWorker.ready.then(() => {})),
    () =>
      page.waitForFunction(
        async (blocks) => (await window.vademecum.rows("vectorEmbeddings")).length === blocks,
        blocks,
        { polling: 500, timeout: 300_000 },
      ),
  );
  await page.evaluate(() => window.vademecum.downloadModel());
  await page.waitForFunction(async () => (await window.vademecum.state()).model.kind === "ready");
  const go = (path) => page.evaluate((path) => history.pushState(null, "", path), path);
  const home = () => go(`/s/${SESSION}`).then(() => box.waitFor());
  const list = await often(
    () => go("/documents"),
    () => page.getByRole("link", { name: "document 99.txt", exact: true }).waitFor(),
    home,
  );
  const open = await often(
    () => go("/documents/d0"),
    () => page.getByText("Passage 0.").first().waitFor(),
    home,
  );
  const idle = await memory(page);
  const answered = (round) =>
    page.evaluate(
      async ([session, round]) => {
        const id = await window.vademecum.ask(session, `Which ${round} garden has the heating letter?`);
        for (;;) {
          const [turn] = await window.vademecum.rows("episodes", { selector: { id } });
          if (turn?.status === "done") return;
          await new Promise((wait) => setTimeout(wait, 5));
        }
      },
      [SESSION, round],
    );
  const nothing = async () => {};
  const first = await timed(() => answered("first"), nothing);
  const answer = await often(answered, nothing);
  const busy = await memory(page);
  await page.context().setOffline(true);
  const reload = await often(
    () => page.reload(),
    async () => {
      await box.waitFor();
      await page.evaluate(() => window.vademecum.rows("sessions"));
    },
  );
  return { arrived, list, open, first, answer, reload, idle, busy };
}

const server = await servers.Harness.start({ VADEMECUM_MODELS: chromium.MODELS });
try {
  const user = await server.user();
  await furnish(server, user);
  const browser = await chromium.Browser.start({ own: [], installs: true });
  try {
    const found = await figures(server, browser, user);
    const ms = (time) => `${time.toFixed(0)} ms`;
    console.log(`${DOCUMENTS} documents, one of ${CHUNKS} chunks; load average ${loadavg()[0].toFixed(1)}

| what | median of ${rounds} |
|---|---|
| all of it on a new device (once) | ${ms(found.arrived)} |
| the list of documents | ${ms(found.list)} |
| the document of ${CHUNKS} chunks opens | ${ms(found.open)} |
| the first question, which reads all documents (once) | ${ms(found.first)} |
| a question is answered | ${ms(found.answer)} |
| loaded anew without a network, until it can be used | ${ms(found.reload)} |
| memory of page and worker, before the first question | ${found.idle.toFixed(0)} MB |
| the same, with all documents in memory | ${found.busy.toFixed(0)} MB |`);
  } finally {
    await browser.stop();
  }
} finally {
  await server.stop();
}
