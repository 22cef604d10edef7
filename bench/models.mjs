/**
 * Measure what each embedding model costs: `node bench/models.mjs [rounds [FOLDER…]]`, after `npm run build`.
 *
 * Each round measures all models in turn. Speed: passages of 1,000 characters per second of processor time, with one
 * thread, in Python and in Chromium. Memory: the peak of a real server that embeds these passages as a document, and of
 * Chromium's process for a page that downloads the model and embeds them. Download: the bytes of a first visit, from
 * sign-in until the app works offline with the model, as a proxy counts them.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, request as sendRequest } from "node:http";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { runnerImport } from "vite";

const { module: chromium } = await runnerImport("./tests/e2e/browser.ts");
const { module: servers } = await runnerImport("./tests/sync/harness.ts");
const rounds = Number(process.argv[2] ?? 3);
const DEFAULT_FOLDERS = [".cache/models/all-minilm-l6-v2", ".cache/e5/e5-small-v2"];
const folders = process.argv.length > 3 ? process.argv.slice(3) : DEFAULT_FOLDERS;
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
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
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
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
    await until(() => page.evaluate(async () => (await window.vademecum.state()).model.kind === "ready"));
    return proxy.bytes;
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
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const embed = async ([manifest, texts]) => {
      window.model ??= await window.embedder.open(manifest, { threads: 1 });
      await window.model.passages(texts);
    };
    await page.evaluate(embed, [models[0], texts.slice(0, 1)]);
    const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
    const pid = renderers.toSorted((a, b) => peakMemory(b) - peakMemory(a))[0];
    const before = cpuTime(pid);
    await page.evaluate(embed, [models[0], texts]);
    return { speed: texts.length / (cpuTime(pid) - before), memory: peakMemory(pid) };
  } finally {
    await browser.stop();
  }
}

async function measure(folder) {
  const models = mkdtempSync(join(tmpdir(), "vademecum-models-"));
  symlinkSync(resolve(folder), join(models, basename(folder)));
  const server = await servers.Harness.start({ VADEMECUM_MODELS: models });
  try {
    const user = await server.user();
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
for (let round = 0; round < rounds; round++) {
  for (const folder of folders) results.get(folder).push(await measure(folder));
}
const heads = [...folders.map((folder) => basename(folder)), "last ÷ first, within a round"];
console.log(`| median of ${rounds} | ${heads.join(" | ")} |\n|---|${"---:|".repeat(heads.length)}`);
const [first, last] = [results.get(folders[0]), results.get(folders.at(-1))];
for (const name of Object.keys(first[0])) {
  const cells = [...results.values()].map((all) => median(all.map((result) => result[name])).toFixed(1));
  const ratio = median(last.map((result, round) => result[name] / first[round][name])).toFixed(2);
  console.log(`| ${name} | ${cells.join(" | ")} | ${ratio} |`);
}
process.exit(0);
