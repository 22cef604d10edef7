/**
 * Measure what each embedding model costs: `node bench/models.mjs [--slow] [rounds [FOLDER…]]`, after `npm run build`.
 *
 * Each round measures all models in turn. Speed: passages of 1,000 characters per second of processor time, with one
 * thread, in Python and in Chromium. Memory: the peak of a real server that embeds these passages as a document, and of
 * Chromium's process for a page that downloads the model and embeds them. Download: the bytes of a first visit, from
 * sign-in until the app works offline with the model, as a proxy counts them.
 *
 * With `--slow`, measure only Chromium, as on a device with a quarter of this processor's speed, in seconds and milliseconds
 * of wall time: its processes for pages are stopped for three quarters of the time. The throttling of the DevTools protocol
 * does not slow down workers, in which the model runs.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, request as sendRequest } from "node:http";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { runnerImport } from "vite";

const { module: chromium } = await runnerImport("./tests/e2e/browser.ts");
const { module: servers } = await runnerImport("./tests/sync/harness.ts");
const isSlow = process.argv.includes("--slow");
const [rounds = 3, ...named] = process.argv.slice(2).filter((word) => word !== "--slow");
const STAND_IN = "-4bit"; // the end of the name of a model whose weights have 4 bits (tests/multilingual_stand_in.py)
const DEFAULT_FOLDERS = [
  ".cache/models/all-minilm-l6-v2",
  ".cache/e5/e5-small-v2",
  ...(isSlow ? [`.cache/multilingual/multilingual-e5-small${STAND_IN}`] : []),
];
const folders = named.length > 0 ? named : DEFAULT_FOLDERS;
const SLOWDOWN = 4;
const SLICE_MS = 10;
const QUESTION = "How many months of notice does the tenant of a furnished flat have to give?";
const QUESTIONS = 10;
const PASSAGES_SLOW = 12; // fewer, because they take seconds each
const SIZE = 1000;
const { documents } = JSON.parse(readFileSync("bench/several_passages.json", "utf8"));
const prose = Object.values(documents).flat().join(" ");
const texts = Array.from({ length: Math.floor(prose.length / SIZE) }, (_, n) =>
  prose.slice(n * SIZE, (n + 1) * SIZE),
);
const TICKS = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** Return the largest amount of memory that a process has used, in MB. */
function peakMemory(pid) {
  return Number(/VmHWM:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
}

/** Return the processor time of a process in seconds. */
function cpuTime(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Call `check` until it returns a value. */
async function until(check) {
  for (;;) {
    const value = await check();
    if (value) return value;
    await sleep(100);
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Run `work` while the processes that render pages run for only a part of the time. */
async function slowedDown(page, work) {
  const session = await page.context().browser().newBrowserCDPSession();
  let pids = [];
  let isOver = false;
  const signal = (name) => {
    for (const pid of pids) {
      try {
        process.kill(pid, name);
      } catch {
        // The process has ended.
      }
    }
  };
  const cycles = (async () => {
    for (let n = 0; !isOver; n++) {
      if (n % 25 === 0) pids = await renderers(session); // a new page or service worker may have started a process
      signal("SIGSTOP");
      await sleep((SLOWDOWN - 1) * SLICE_MS);
      signal("SIGCONT");
      await sleep(SLICE_MS);
    }
  })();
  try {
    return await work();
  } finally {
    isOver = true;
    await cycles;
  }
}

async function renderers(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
}

/** Forward requests to the server, and count the bytes of the responses by kind. */
async function openProxy(server) {
  const bytes = { model: 0, onnxruntime: 0, app: 0 };
  const proxy = createServer((request, response) => {
    const { url, method, headers } = request;
    const runtime = url.includes("ort-wasm") ? "onnxruntime" : "app";
    const kind = url.startsWith("/models/") ? "model" : runtime;
    const upstream = sendRequest(server.url + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.on("data", (data) => (bytes[kind] += data.length)).pipe(response);
    });
    request.pipe(upstream);
    for (const end of [response, upstream]) end.on("close", () => upstream.destroy()).on("error", () => {});
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const close = () => (proxy.closeAllConnections(), proxy.close());
  return { url: `http://127.0.0.1:${proxy.address().port}`, bytes, close };
}

async function firstVisit(server, user) {
  const proxy = await openProxy(server);
  const browser = await chromium.Browser.start({ installs: true });
  try {
    const { link } = await server.control("link", { userId: user.userId });
    const page = await browser.page(proxy.url + link);
    const visit = async () => {
      const began = performance.now();
      const seconds = () => (performance.now() - began) / 1000;
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
      const usable = seconds();
      await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
      const installed = seconds();
      await page.evaluate(() => window.vademecum.downloadModel());
      await until(() => page.evaluate(async () => (await window.vademecum.state()).model.kind === "ready"));
      return { ...proxy.bytes, usable, download: seconds() - installed };
    };
    return await (isSlow ? slowedDown(page, visit) : visit());
  } finally {
    await browser.stop();
    proxy.close();
  }
}

/** Upload the texts as a document and return the peak memory of the server when all vectors are there. */
async function serverMemory(server, user) {
  const form = new FormData();
  form.append("file", new Blob([texts.join("\n\n")], { type: "text/plain" }), "texts.txt");
  const headers = { authorization: `Bearer ${user.token}` };
  const response = await fetch(`${server.url}/v1/documents`, { method: "POST", body: form, headers });
  if (!response.ok) throw new Error(await response.text());
  await until(async () => {
    const blocks = await server.liveRows(user, "vectorEmbeddings");
    return blocks.length > 0 && blocks.every(({ embedding }) => embedding);
  });
  const parent = server.process.pid;
  const [pid] = readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim().split(" ");
  return peakMemory(pid);
}

/** Open the model in a new browser profile and return the speed with one thread and the peak memory of the page. */
async function inChromium(server, user) {
  const { models } = await server.request(user, "/v1/models");
  const browser = await chromium.Browser.start();
  try {
    const page = await browser.page(`${server.url}/embedder.html`);
    const session = await page.context().browser().newBrowserCDPSession();
    const embed = async ([manifest, texts]) => {
      window.model ??= await window.embedder.open(manifest, { threads: 1 });
      await window.model.passages(texts);
    };
    await page.evaluate(embed, [models[0], texts.slice(0, 1)]);
    const pid = (await renderers(session)).toSorted((a, b) => peakMemory(b) - peakMemory(a))[0];
    const before = cpuTime(pid);
    await page.evaluate(embed, [models[0], texts]);
    return { speed: texts.length / (cpuTime(pid) - before), memory: peakMemory(pid) };
  } finally {
    await browser.stop();
  }
}

/** Open the downloaded model on a slow device, and return the times of its start, a passage and a question. */
async function onSlowDevice(server, user) {
  const { models } = await server.request(user, "/v1/models");
  const browser = await chromium.Browser.start();
  try {
    const page = await browser.page(`${server.url}/embedder.html`);
    await page.evaluate((manifest) => window.embedder.fetchModel(manifest), models[0]);
    const times = await slowedDown(page, () =>
      page.evaluate(
        async ([manifest, texts, question, questions]) => {
          const timed = async (work) => {
            const began = performance.now();
            await work();
            return performance.now() - began;
          };
          let model;
          const start = await timed(async () => {
            model = await window.embedder.open(manifest, { threads: 1 });
            await model.query(question); // the first one is slower
          });
          const passages = await timed(() => model.passages(texts));
          const asked = await timed(async () => {
            for (let n = 0; n < questions; n++) await model.query(question);
          });
          return { start: start / 1000, passage: passages / texts.length, question: asked / questions };
        },
        [models[0], texts.slice(0, PASSAGES_SLOW), QUESTION, QUESTIONS],
      ),
    );
    const session = await page.context().browser().newBrowserCDPSession();
    const memory = Math.max(...(await renderers(session)).map(peakMemory));
    return { ...times, memory };
  } finally {
    await browser.stop();
  }
}

async function measureSlow(server, user) {
  const visit = await firstVisit(server, user);
  const device = await onSlowDevice(server, user);
  return {
    "first visit, app and onnxruntime, MB": (visit.app + visit.onnxruntime) / 1e6,
    "first visit, model, MB": visit.model / 1e6,
    "first visit, app usable, seconds": visit.usable,
    "first visit, download and check of the model, seconds": visit.download,
    "start of the model, seconds": device.start,
    "passage of 1,000 characters, milliseconds": device.passage,
    "question, milliseconds": device.question,
    "peak memory of the page's process, MB": device.memory,
  };
}

async function measure(folder) {
  const models = mkdtempSync(join(tmpdir(), "vademecum-models-"));
  // The server chooses a model by the name of its folder.
  symlinkSync(resolve(folder), join(models, basename(folder).replace(STAND_IN, "")));
  const server = await servers.Harness.start({ VADEMECUM_MODELS: models });
  try {
    const user = await server.user();
    if (isSlow) return await measureSlow(server, user);
    const visit = await firstVisit(server, user);
    const memory = await serverMemory(server, user);
    const page = await inChromium(server, user);
    const command = ["bench/embed_texts.py", folder];
    const seconds = execFileSync(".venv/bin/python", command, {
      input: JSON.stringify(texts),
      encoding: "utf8",
    });
    return {
      "server, passages per second": texts.length / Number(seconds),
      "server, peak memory, MB": memory,
      "Chromium, passages per second": page.speed,
      "Chromium, peak memory, MB": page.memory,
      "first visit, app, MB": visit.app / 1e6,
      "first visit, onnxruntime, MB": visit.onnxruntime / 1e6,
      "first visit, model, MB": visit.model / 1e6,
    };
  } finally {
    await server.stop();
    rmSync(models, { recursive: true });
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const results = new Map(folders.map((folder) => [folder, []]));
for (let round = 0; round < Number(rounds); round++) {
  for (const folder of folders) results.get(folder).push(await measure(folder));
}
const [first, ...others] = folders.map((folder) => results.get(folder));
const heads = folders.map((folder) => basename(folder));
const ratioHeads = heads.slice(1).map((head) => `${head} ÷ ${heads[0]}, within a round`);
console.log(`| median of ${rounds} | ${[...heads, ...ratioHeads].join(" | ")} |`);
console.log(`|---|${"---:|".repeat(heads.length + ratioHeads.length)}`);
for (const name of Object.keys(first[0])) {
  const cells = [first, ...others].map((all) => median(all.map((result) => result[name])).toFixed(1));
  const ratios = others.map((all) =>
    median(all.map((result, round) => result[name] / first[round][name])).toFixed(2),
  );
  console.log(`| ${name} | ${[...cells, ...ratios].join(" | ")} |`);
}
process.exit(0);
